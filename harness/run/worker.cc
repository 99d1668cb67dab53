// One exchange with an adapter.
#include "harness/run/worker.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace ulpscope {
namespace {

constexpr size_t kMaxMessage = size_t{16} << 20;
constexpr size_t kLogPart = 4096;
constexpr int kTickMs = 20;  // how often a working adapter's memory is looked at
constexpr auto kGroupCheck = std::chrono::milliseconds(500);
// A process closes its socket before it ends: exit handlers run and frameworks unload in between. A process that is
// still running after this time (the time that doctor grants after requesting an end) does not end by itself.
constexpr auto kUnloading = std::chrono::seconds(20);

std::string Seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", seconds);
  return text;
}

std::string Gibibytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

}  // namespace

void BoundedLog::Append(std::string_view text) {
  total_ += static_cast<int64_t>(text.size());
  const size_t first = std::min(text.size(), kLogPart - head_.size());
  head_ += text.substr(0, first);
  text.remove_prefix(first);
  if (text.size() > kLogPart) text.remove_prefix(text.size() - kLogPart);
  tail_ += text;
  if (tail_.size() > 4 * kLogPart) tail_.erase(0, tail_.size() - kLogPart);
}

void BoundedLog::Clear() { *this = BoundedLog(); }

std::string BoundedLog::Text() const {
  const std::string end = tail_.substr(tail_.size() - std::min(tail_.size(), kLogPart));
  const auto left_out = total_ - static_cast<int64_t>(head_.size() + end.size());
  if (left_out <= 0) return head_ + end;
  return head_ + "\n... " + std::to_string(left_out) + " bytes ...\n" + end;
}

Result<std::unique_ptr<Worker>> Worker::Start(const SpawnRequest& request) {
  auto child = ULPSCOPE_TRY(ChildProcess::Spawn(request));
  return std::unique_ptr<Worker>(new Worker(std::move(child)));
}

Answer Worker::Exchange(std::string_view message, const WorkerLimits& limits) {
  out_.Clear();
  err_.Clear();
  std::string line(message);
  line += '\n';
  std::string_view unsent = line;
  const auto start = Clock::now();
  next_group_check_ = start + kGroupCheck;
  Answer answer;
  while (!Step(unsent, limits, start, answer)) {
  }
  DrainOutput();
  return answer;
}

bool Worker::Step(std::string_view& unsent, const WorkerLimits& limits, Clock::time_point start,
                  Answer& answer) {
  std::array<pollfd, 5> fds{{
      {.fd = socket_closed_ ? -1 : child_->socket(),
       .events = static_cast<short>(unsent.empty() ? POLLIN : POLLIN | POLLOUT),
       .revents = 0},
      {.fd = out_closed_ ? -1 : child_->out(), .events = POLLIN, .revents = 0},
      {.fd = err_closed_ ? -1 : child_->err(), .events = POLLIN, .revents = 0},
      {.fd = child_->pidfd(), .events = POLLIN, .revents = 0},
      {.fd = limits.interrupt_fd, .events = POLLIN, .revents = 0},
  }};
  ::poll(fds.data(), fds.size(), kTickMs);
  if (fds[4].revents != 0) {
    child_->Kill();
    answer = RunInterrupted{};
    return true;
  }
  if (fds[1].revents != 0 || fds[2].revents != 0) DrainOutput();
  if (!unsent.empty() && (fds[0].revents & POLLOUT) != 0) {
    const ssize_t sent = ::send(child_->socket(), unsent.data(), unsent.size(), MSG_NOSIGNAL);
    if (sent > 0)
      unsent.remove_prefix(static_cast<size_t>(sent));
    else if (sent < 0 && errno == EPIPE)
      socket_closed_ = true;
  }
  if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) ReadSocket();
  if (TakeLine(answer)) return true;
  if (fds[3].revents != 0) {
    ReadSocket();  // an answer that was sent with its last breath counts
    if (!TakeLine(answer)) answer = Ended();
    return true;
  }
  if (!socket_closed_) return CheckBudgets(limits, start, answer);
  // Its output is still read and dropped, so that a full pipe cannot keep it from ending.
  const auto now = Clock::now();
  if (!socket_closed_at_) socket_closed_at_ = now;
  const auto until = std::min<Clock::time_point>(
      *socket_closed_at_ + kUnloading,
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.seconds)));
  if (now < until) return CheckMemory(limits, now, answer);
  answer =
      Broken(received_.empty() ? "the adapter closed its socket before it answered, and did not end"
                               : "the adapter closed its socket in the middle of an answer, and did not end");
  return true;
}

void Worker::ReadSocket() {
  static thread_local std::array<char, 1 << 16> buffer;
  while (!socket_closed_ && received_.size() <= kMaxMessage) {
    const ssize_t got = ::recv(child_->socket(), buffer.data(), buffer.size(), 0);
    if (got > 0) {
      received_.append(buffer.data(), static_cast<size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      socket_closed_ = true;
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

bool Worker::TakeLine(Answer& answer) {
  const size_t end = received_.find('\n');
  if (end == std::string::npos) {
    if (received_.size() <= kMaxMessage) return false;
    answer = Broken("an answer of more than 16 MiB");
    return true;
  }
  if (end + 1 != received_.size()) {
    answer = Broken("more than one line in answer to one message");
    return true;
  }
  received_.pop_back();
  answer = std::exchange(received_, {});
  return true;
}

bool Worker::CheckMemory(const WorkerLimits& limits, Clock::time_point now, Answer& answer) {
  int64_t resident = child_->ResidentBytes();
  if (now >= next_group_check_) {
    resident = std::max(resident, child_->GroupResidentBytes());
    next_group_check_ = now + kGroupCheck;
  }
  if (resident > limits.memory_bytes) {
    child_->Kill();
    answer = Outcome{.kind = OutcomeKind::kOutOfMemory,
                     .error_class = "",
                     .text = "resident memory above the budget of " + Gibibytes(limits.memory_bytes)};
    return true;
  }
  return false;
}

bool Worker::CheckBudgets(const WorkerLimits& limits, Clock::time_point start, Answer& answer) {
  const auto now = Clock::now();
  if (CheckMemory(limits, now, answer)) return true;
  if (std::chrono::duration<double>(now - start).count() < limits.seconds) return false;
  const bool stopped = child_->IsStopped();
  child_->Kill();
  answer = Outcome{.kind = OutcomeKind::kTimedOut,
                   .error_class = "",
                   .text = "no answer within " + Seconds(limits.seconds) +
                           (stopped ? "; the adapter was stopped by a signal" : "") +
                           (received_.empty() ? "" : "; a part of one had come")};
  return true;
}

void Worker::DrainOutput() {
  static thread_local std::array<char, 1 << 18> buffer;
  const auto drain = [&](int fd, BoundedLog& log, bool& closed) {
    // Bounded per call: a worker that never stops printing must not keep us from its deadline.
    for (int i = 0; i < 16 && !closed; ++i) {
      const ssize_t got = ::read(fd, buffer.data(), buffer.size());
      if (got > 0)
        log.Append(std::string_view(buffer.data(), static_cast<size_t>(got)));
      else if (got == 0)
        closed = true;
      else if (errno != EINTR)
        return;
    }
  };
  drain(child_->out(), out_, out_closed_);
  drain(child_->err(), err_, err_closed_);
}

Outcome Worker::Ended() {
  const Ending ending = child_->Kill();
  if (ending.signal == 0) {
    return {
        .kind = OutcomeKind::kCrashed,
        .error_class = "exit " + std::to_string(ending.status),
        .text = "the adapter exited with status " + std::to_string(ending.status) + " before it answered"};
  }
  std::string text = "the adapter was killed by " + SignalName(ending.signal);
  if (ending.signal == SIGKILL) text += ", not sent by ulpscope (the kernel, short of memory?)";
  return {.kind = OutcomeKind::kCrashed, .error_class = SignalName(ending.signal), .text = text};
}

Outcome Worker::Broken(std::string text) {
  child_->Kill();
  return {.kind = OutcomeKind::kProtocolBroken, .error_class = "", .text = std::move(text)};
}

bool Worker::IsIdle() {
  if (child_->HasEnded()) return false;
  ReadSocket();
  return received_.empty() && !socket_closed_;
}

Ending Worker::Bye(int milliseconds) {
  constexpr std::string_view kBye = "{\"verb\":\"bye\"}\n";
  if (IsIdle() && ::send(child_->socket(), kBye.data(), kBye.size(), MSG_NOSIGNAL) > 0) {
    // Its last output is read and dropped, so that a full pipe cannot keep it from ending.
    for (int waited = 0; waited < milliseconds && !child_->WaitForEnd(kTickMs); waited += kTickMs)
      DrainOutput();
  }
  return child_->Kill();
}

std::string Worker::Log() const {
  std::string text = err_.Text();
  const std::string out = out_.Text();
  if (!out.empty()) text += (text.empty() ? "stdout: " : "\nstdout: ") + out;
  return text;
}

}  // namespace ulpscope
