// Interrupt: SIGINT, SIGTERM and SIGHUP as a file descriptor that every waiting thread can watch.
#pragma once

#include <atomic>

namespace ulpscope {

/// Catches the signals while it lives; a second signal ends the process. Only one may live at a time. A signal also sets a deadline
/// (harness/base/deadline.h), which stays when this is gone.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Stays readable once raised.
  int fd() const { return fd_; }
  bool IsRaised() const;
  /// Has the effect of a signal, from inside the process.
  void Raise() const;

 private:
  int fd_ = -1;
};

}  // namespace ulpscope
