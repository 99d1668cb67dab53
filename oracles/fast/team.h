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

  /// Calls work(begin, end, member) on ranges that together are [0, count), of multiples of `grain`; returns when all are
  /// done. Ranges are contiguous and one per member, so that which member does what is no matter of timing.
  void For(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t, int)>& work);

 private:
  void Serve(int member);
  void Part(int member) const;

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> round_{0};
  std::atomic<int> busy_{0};
  std::atomic<bool> stop_{false};
  const std::function<void(int64_t, int64_t, int)>* work_ = nullptr;
  int64_t count_ = 0, grain_ = 1;
};

}  // namespace ulpscope::fast
