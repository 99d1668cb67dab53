// Strands: jobs on some threads, those of one name one after the other.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ulpscope {

/// Jobs must not throw.
class Strands {
 public:
  using Job = std::function<void()>;
  /// At least one thread; `most` jobs wait at most. The threads begin with the first job: a process that forks before it has one
  /// thread, whose allocator nobody else holds (Scratch::Create forks its janitor so).
  Strands(size_t threads, size_t most);
  /// After all jobs.
  ~Strands();
  Strands(const Strands&) = delete;
  Strands& operator=(const Strands&) = delete;

  /// Runs `job` on some thread, after the jobs of `name` that were posted before. Waits while too many wait.
  void Post(std::string name, Job job);
  /// Until every job is done.
  void Wait();

 private:
  void Work();

  size_t most_, wanted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::string, Job>> waiting_;
  std::set<std::string> running_;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ulpscope
