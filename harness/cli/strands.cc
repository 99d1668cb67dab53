// The threads of Strands.
#include "harness/cli/strands.h"

#include <algorithm>

namespace ulpscope {

Strands::Strands(size_t threads, size_t most)
    : most_(std::max<size_t>(1, most)), wanted_(std::max<size_t>(1, threads)) {}

Strands::~Strands() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Strands::Post(std::string name, Job job) {
  std::unique_lock lock(mutex_);
  while (threads_.size() < wanted_) threads_.emplace_back([this] { Work(); });
  changed_.wait(lock, [this] { return waiting_.size() < most_; });
  waiting_.emplace_back(std::move(name), std::move(job));
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
      next = std::find_if(waiting_.begin(), waiting_.end(),
                          [this](const auto& entry) { return !running_.contains(entry.first); });
      return next != waiting_.end() || (ended_ && waiting_.empty());
    });
    if (next == waiting_.end()) return;
    auto [name, job] = std::move(*next);
    waiting_.erase(next);
    running_.insert(name);
    lock.unlock();
    changed_.notify_all();
    job();
    job = nullptr;  // what it holds goes before others are told that it is done
    lock.lock();
    running_.erase(name);
    changed_.notify_all();
  }
}

}  // namespace ulpscope
