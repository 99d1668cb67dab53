// Signals to an eventfd.
#include "harness/run/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>

#include "harness/base/check.h"
#include "harness/base/deadline.h"

namespace ulpscope {
namespace {

constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
/// Time after an interrupt that judging the finished part may take.
constexpr std::chrono::milliseconds kPatience(250);
std::atomic<int> g_fd{-1};
std::atomic<bool> g_caught{false};
std::array<struct sigaction, 3> g_before;

void Notify(int fd) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = ::write(fd, &one, sizeof one);
}

void OnSignal(int signal) {
  if (g_caught.exchange(true)) {
    ::signal(signal, SIG_DFL);  // second request: exit at once; the janitor cleans up
    ::raise(signal);
    return;
  }
  SetDeadline(kPatience);
  Notify(g_fd.load());
}

}  // namespace

Interrupt::Interrupt() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  int nobody = -1;
  ULPSCOPE_CHECK(fd_ >= 0 && g_fd.compare_exchange_strong(nobody, fd_), "one run at a time");
  g_caught = false;
  ClearDeadline();
  struct sigaction action {};
  action.sa_handler = OnSignal;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &g_before[i]);
    // Signals that were ignored (nohup) stay ignored.
    if (g_before[i].sa_handler == SIG_IGN) ::sigaction(kSignals[i], &g_before[i], nullptr);
  }
  ::signal(SIGPIPE, SIG_IGN);
}

Interrupt::~Interrupt() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &g_before[i], nullptr);
  g_fd = -1;
  ::close(fd_);
}

bool Interrupt::IsRaised() const {
  pollfd poll_fd{.fd = fd_, .events = POLLIN, .revents = 0};
  return ::poll(&poll_fd, 1, 0) > 0;
}

void Interrupt::Raise() const { Notify(fd_); }

}  // namespace ulpscope
