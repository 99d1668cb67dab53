// ChildProcess: one adapter process in a process group of its own, with a socket, two pipes and nothing else
// of ours.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/result.h"

namespace ulpscope {

struct SpawnRequest {
  std::vector<std::string> argv;         ///< argv[0] is the path of the executable
  std::vector<std::string> environment;  ///< "NAME=value"; ULPSCOPE_FD is added
  std::filesystem::path cwd;
  std::string token;  ///< marks the process and its descendants, see KillMarked
};

/// How a process ended: a signal, or an exit status.
struct Ending {
  int signal = 0;
  int status = 0;
};

/// "SIGSEGV", "signal 42"
std::string SignalName(int signal);

class ChildProcess {
 public:
  /// Starts the process. It dies with the calling *thread* (PR_SET_PDEATHSIG), so that thread must keep it.
  static Result<std::unique_ptr<ChildProcess>> Spawn(const SpawnRequest& request);
  /// Kills the group and every marked descendant, and reaps.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  int socket() const { return socket_; }  ///< non-blocking
  int out() const { return out_; }        ///< non-blocking
  int err() const { return err_; }        ///< non-blocking
  int pidfd() const { return pidfd_; }    ///< readable once the process has ended
  pid_t pid() const { return pid_; }

  bool HasEnded() const;
  /// Waits up to `milliseconds` for it to end by itself; does not reap.
  bool WaitForEnd(int milliseconds) const;
  /// Kills the group, reaps, and returns how the process ended (before the kill, if it had). Idempotent.
  Ending Kill();
  /// True while it is stopped by a signal.
  bool IsStopped() const;

  /// Resident bytes of the process alone (cheap), and of its whole group.
  int64_t ResidentBytes() const;
  int64_t GroupResidentBytes() const;

 private:
  ChildProcess() = default;

  std::string token_;
  pid_t pid_ = -1;
  int pidfd_ = -1, socket_ = -1, out_ = -1, err_ = -1;
  bool reaped_ = false;
  Ending ending_;
};

}  // namespace ulpscope
