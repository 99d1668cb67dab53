// Strands: jobs on some threads, those of one name one after the other.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace ulpscope {

/// Jobs must not throw.
class Strands {
 public:
  using Job = std::function<void()>;
  /// At least one thread; jobs of `most` bytes wait at most, or one that is larger. The threads begin with
  /// the first job: a process that forks before it has one thread, and so no allocator that another thread
  /// holds (Scratch::Create forks its janitor so).
  Strands(size_t threads, size_t most);
  /// After all jobs.
  ~Strands();
  Strands(const Strands&) = delete;
  Strands& operator=(const Strands&) = delete;

  /// Runs `job`, which holds `bytes`, on some thread, after the jobs of `name` that were posted before. Waits while too much waits.
  void Post(std::string name, size_t bytes, Job job);
  /// Until every job is done.
  void Wait();
  /// How long Post has waited, all calls together.
  std::chrono::duration<double> waited() const { return waited_; }

 private:
  struct Waiting {
    std::string name;
    size_t bytes = 0;
    Job job;
  };

  void Work();

  size_t most_, wanted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  size_t bytes_ = 0;  ///< of waiting_
  std::chrono::duration<double> waited_{0};
  std::set<std::string> running_;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ulpscope
