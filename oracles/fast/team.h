// Team: a few threads that wait for work; the one pool of the fast oracle.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ulpscope::fast {

/// The caller is one of the members. Nothing is pinned. With one member no thread is ever started.
class Team {
 public:
  explicit Team(int members);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int members() const { return static_cast<int>(threads_.size()) + 1; }

  /// Calls work(begin, end, member) on ranges that together are [0, count), of multiples of `grain`; returns when all
  /// are done. Ranges are contiguous and one per member, so that each member's work does not depend on timing.
  void For(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t, int)>& work);

  /// For benches on busy machines: the CPU time of the longest part of each For so far, less what the caller
  /// spent in it. Added to the caller's own CPU time it gives the time that free processors would have
  /// needed.
  double correction_seconds() const { return correction_seconds_; }

 private:
  void Serve(int member);
  void Part(int member);

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> round_{0};
  std::atomic<int> busy_{0};
  std::atomic<bool> stop_{false};
  const std::function<void(int64_t, int64_t, int)>* work_ = nullptr;
  int64_t count_ = 0, grain_ = 1;
  std::vector<double> part_seconds_;
  double correction_seconds_ = 0;
};

}  // namespace ulpscope::fast
