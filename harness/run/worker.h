// Worker: a running adapter, one message and one answer at a time, always with a deadline and a memory budget.
//
// A worker is not trusted. Output is captured to a bounded log (a worker may print a gigabyte), the answer must be one
// line of bounded length, and whatever else happens while it is awaited (the end of the process, a closed socket,
// silence, too much memory) comes back as an Outcome. After any Outcome the worker is dead.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "harness/model/observation.h"
#include "harness/run/child_process.h"

namespace ulpscope {

/// The beginning and the end of a stream of any length, in bounded memory.
class BoundedLog {
 public:
  void Append(std::string_view text);
  void Clear();
  /// At most about 8 KiB; states how much was left out in between.
  std::string Text() const;

 private:
  std::string head_, tail_;
  int64_t total_ = 0;
};

struct WorkerLimits {
  double seconds = 120;                     ///< until the answer must be complete
  int64_t memory_bytes = int64_t{8} << 30;  ///< resident, whole process group
  int interrupt_fd = -1;                    ///< readable once the run is to end
};

/// The run was interrupted while the answer was awaited.
struct RunInterrupted {};
/// The worker's answer, a failure, or an interruption.
using Answer = std::variant<std::string, Outcome, RunInterrupted>;

class Worker {
 public:
  static Result<std::unique_ptr<Worker>> Start(const SpawnRequest& request);

  /// Sends one line (without its newline) and awaits the answer.
  Answer Exchange(std::string_view message, const WorkerLimits& limits);

  /// True if it can take a message: alive, and silent since its last answer.
  bool IsIdle();
  /// Requests its end and makes sure of it; how it ended (by SIGKILL if the request was not enough).
  Ending Bye(int milliseconds = 2000);
  /// Ends it at once.
  void Kill() { child_->Kill(); }
  /// The end of its output on stderr and stdout.
  std::string Log() const;

 private:
  explicit Worker(std::unique_ptr<ChildProcess> child) : child_(std::move(child)) {}
  using Clock = std::chrono::steady_clock;

  /// Waits for events for at most a tick and moves bytes. True, with `answer` set, once something final happened.
  bool Step(std::string_view& unsent, const WorkerLimits& limits, Clock::time_point start, Answer& answer);
  bool TakeLine(Answer& answer);
  bool CheckBudgets(const WorkerLimits& limits, Clock::time_point start, Answer& answer);
  bool CheckMemory(const WorkerLimits& limits, Clock::time_point now, Answer& answer);
  void ReadSocket();
  void DrainOutput();
  Outcome Ended();
  Outcome Broken(std::string text);

  std::unique_ptr<ChildProcess> child_;
  std::string received_;
  bool socket_closed_ = false;
  std::optional<Clock::time_point> socket_closed_at_;  ///< when that was first seen in an exchange
  bool out_closed_ = false, err_closed_ = false;
  Clock::time_point next_group_check_{};
  BoundedLog out_, err_;
};

}  // namespace ulpscope
