// The threads of Strands.
#include "harness/hybrid/strands.h"

#include <algorithm>
#include <utility>

#include "harness/base/machine_limits.h"

namespace ulpscope {

Strands::Strands(size_t threads, size_t most) : most_(most), wanted_(std::max<size_t>(1, threads)) {}

Strands::~Strands() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Strands::Post(std::string name, size_t bytes, Job job) {
  std::unique_lock lock(mutex_);
  while (threads_.size() < wanted_) {
    auto thread = TryThread([this] { Work(); });
    if (!thread) break;
    threads_.push_back(std::move(*thread));
  }
  if (threads_.empty()) {
    // The machine has no thread left: the caller's is one.
    lock.unlock();
    job();
    return;
  }
  const auto began = std::chrono::steady_clock::now();
  changed_.wait(lock, [&] { return waiting_.empty() || bytes_ + bytes <= most_; });
  waited_ += std::chrono::steady_clock::now() - began;
  bytes_ += bytes;
  waiting_.push_back({.name = std::move(name), .bytes = bytes, .job = std::move(job)});
  changed_.notify_all();
}

void Strands::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && running_.empty(); });
}

void Strands::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    auto next = waiting_.end();
    changed_.wait(lock, [&] {
      next = std::ranges::find_if(waiting_,
                                  [this](const auto& entry) { return !running_.contains(entry.name); });
      return next != waiting_.end() || (ended_ && waiting_.empty());
    });
    if (next == waiting_.end()) return;
    auto [name, bytes, job] = std::move(*next);
    waiting_.erase(next);
    bytes_ -= bytes;
    running_.insert(name);
    lock.unlock();
    changed_.notify_all();
    job();
    job = nullptr;  // destroys it before others learn that it is done
    lock.lock();
    running_.erase(name);
    changed_.notify_all();
  }
}

}  // namespace ulpscope
