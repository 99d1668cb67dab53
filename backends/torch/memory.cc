// Counting what PyTorch's allocators report.
#include "backends/torch/memory.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <mutex>

namespace ulpscope::torch_backend {

struct MemoryPeak::Counter : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, int64_t size, size_t, size_t, c10::Device) override {
    const std::scoped_lock lock(mutex);
    held += size;
    peak = std::max(peak, held);
  }
  bool memoryProfilingEnabled() const override { return true; }

  mutable std::mutex mutex;
  int64_t held = 0, base = 0, peak = 0;
};

struct MemoryPeak::Guard {
  explicit Guard(std::shared_ptr<Counter> counter)
      : guard(c10::DebugInfoKind::PROFILER_STATE, std::move(counter)) {}
  c10::DebugInfoGuard guard;
};

MemoryPeak::MemoryPeak() : counter_(std::make_shared<Counter>()), guard_(std::make_unique<Guard>(counter_)) {}
MemoryPeak::~MemoryPeak() = default;

void MemoryPeak::Begin() {
  const std::scoped_lock lock(counter_->mutex);
  counter_->base = counter_->peak = counter_->held;
}

int64_t MemoryPeak::Peak() const {
  const std::scoped_lock lock(counter_->mutex);
  return counter_->peak - counter_->base;
}

}  // namespace ulpscope::torch_backend
