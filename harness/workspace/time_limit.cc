// The clock of --minutes.
#include "harness/workspace/time_limit.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/deadline.h"
#include "harness/base/machine_limits.h"
#include "harness/base/text.h"

namespace ulpscope {

TimeLimitWatch::TimeLimitWatch(double minutes)
    : minutes_(minutes), begin_(std::chrono::steady_clock::now()) {}

TimeLimitWatch::~TimeLimitWatch() {
  {
    const std::lock_guard lock(mutex_);
    gone_ = true;
  }
  over_.notify_all();
  if (thread_) thread_->join();
}

std::chrono::steady_clock::time_point TimeLimitWatch::After(double share) const {
  return begin_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                      std::chrono::duration<double>(60 * minutes_ * share));
}

void TimeLimitWatch::BeginDeadline() const {
  if (minutes_ <= 0) return;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(After(1) - std::chrono::steady_clock::now());
  SetDeadline(std::max(left, std::chrono::milliseconds(0)));
}

void TimeLimitWatch::Begin(const Interrupt& interrupt) {
  if (minutes_ <= 0 || thread_) return;
  BeginDeadline();
  thread_ = TryThread([this, &interrupt] {
    std::unique_lock lock(mutex_);
    if (over_.wait_until(lock, After(kRunShare), [this] { return gone_; }) || interrupt.IsRaised()) return;
    ended_run_ = true;
    interrupt.Raise();
  });
}

std::string LimitText(double minutes) {
  return fmt::format("the limit of {:g} {}", minutes, minutes == 1 ? "minute" : "minutes");
}

std::string CheckMinutes(const std::string& text) {
  constexpr double kMost = 60.0 * 24 * 31;
  const auto minutes = WholeNumber<double>(text);
  return minutes && *minutes > 0 && *minutes <= kMost
             ? ""
             : "'" + text + "' is no number of minutes above 0 and up to a month";
}

}  // namespace ulpscope
