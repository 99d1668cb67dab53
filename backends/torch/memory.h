// peak_bytes: the most memory that a program's values took at one time, beyond the tensors that it was given.
//
// PyTorch's allocators report every block that they hand out or take back to whoever stands as the thread's memory profiler, the one of
// CUDA as well, in blocks of 512 bytes. Blocks that another thread takes back are not seen.
#pragma once

#include <cstdint>
#include <memory>

namespace ulpscope::torch_backend {

/// Counts on this thread, and on those of the autograd engine that work for it, from construction to destruction. One at a time.
class MemoryPeak {
 public:
  MemoryPeak();
  ~MemoryPeak();
  MemoryPeak(const MemoryPeak&) = delete;
  MemoryPeak& operator=(const MemoryPeak&) = delete;

  /// Memory that is held at the call does not count towards the peak.
  void Begin();
  /// Bytes, since Begin.
  int64_t Peak() const;

 private:
  struct Counter;
  struct Guard;
  std::shared_ptr<Counter> counter_;
  std::unique_ptr<Guard> guard_;
};

}  // namespace ulpscope::torch_backend
