// A limit of time for a run and its judgement: --minutes.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "harness/run/interrupt.h"

namespace ulpscope {

/// The share of the limit that backends may take. The rest is for judging their results, which are of no use
/// unjudged.
inline constexpr double kRunShare = 0.7;

/// Counts from when it is made. Work that is running when its share is over is ended as by a signal;
/// computations under harness/base/deadline.h end with the whole limit.
class TimeLimitWatch {
 public:
  /// 0: there is no limit.
  explicit TimeLimitWatch(double minutes);
  ~TimeLimitWatch();
  TimeLimitWatch(const TimeLimitWatch&) = delete;
  TimeLimitWatch& operator=(const TimeLimitWatch&) = delete;

  /// Nothing without a limit. `interrupt` outlives this.
  void Begin(const Interrupt& interrupt);
  /// For work that nothing interrupts: a judgement alone.
  void BeginDeadline() const;
  /// True if it has ended the run.
  bool EndedRun() const { return ended_run_; }
  double minutes() const { return minutes_; }

 private:
  std::chrono::steady_clock::time_point After(double share) const;

  double minutes_;
  std::chrono::steady_clock::time_point begin_;
  std::atomic<bool> ended_run_{false};
  std::mutex mutex_;
  std::condition_variable over_;
  bool gone_ = false;
  std::optional<std::thread> thread_;
};

/// "the limit of 2 minutes".
std::string LimitText(double minutes);

/// CLI11's check of --minutes: above 0, at most a month.
std::string CheckMinutes(const std::string& text);

}  // namespace ulpscope
