// Threads that spin for a moment between two pieces of work, then sleep.
#include "oracles/fast/team.h"

#include <time.h>

#include <algorithm>

#include "harness/base/machine_limits.h"

namespace ulpscope::fast {
namespace {

constexpr int kSpins = 20000;

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Team::Team(int members) : part_seconds_(static_cast<size_t>(members), 0) {
  for (int member = 1; member < members; ++member) {
    auto thread = TryThread([this, member] { Serve(member); });
    if (!thread) break;
    threads_.push_back(std::move(*thread));
  }
}

Team::~Team() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Team::Part(int member) {
  const double start = ThreadSeconds();
  const int64_t grains = (count_ + grain_ - 1) / grain_, all = members();
  const int64_t begin = std::min(count_, grains * member / all * grain_),
                end = std::min(count_, grains * (member + 1) / all * grain_);
  if (begin < end) (*work_)(begin, end, member);
  part_seconds_[static_cast<size_t>(member)] = ThreadSeconds() - start;
}

void Team::For(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t, int)>& work) {
  if (threads_.empty() || count <= grain) {
    if (count > 0) work(0, count, 0);
    return;
  }
  const double start = ThreadSeconds();
  work_ = &work;
  count_ = count;
  grain_ = grain;
  busy_ = static_cast<int>(threads_.size());
  {
    const std::lock_guard lock(mutex_);
    ++round_;
  }
  wake_.notify_all();
  Part(0);
  for (int spins = 0; busy_ != 0; ++spins) {
    if (spins < kSpins)
      Pause();
    else
      std::this_thread::yield();
  }
  correction_seconds_ += *std::ranges::max_element(part_seconds_) - (ThreadSeconds() - start);
}

void Team::Serve(int member) {
  for (uint64_t seen = 0;;) {
    for (int spins = 0; spins < kSpins && round_ == seen && !stop_; ++spins) Pause();
    if (round_ == seen) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return round_ != seen || stop_; });
    }
    if (stop_) return;
    seen = round_;
    Part(member);
    --busy_;
  }
}

}  // namespace ulpscope::fast
