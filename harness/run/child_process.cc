// Starting, watching and ending a process.
#include "harness/run/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "harness/run/descendants.h"

namespace ulpscope {
namespace {

constexpr int kWorkerFd = 3;
constexpr int kStatusFd = 4;
constexpr int kPipeBytes = 1 << 20;

/// File descriptors that close themselves unless taken.
struct Fds {
  int socket[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, status[2] = {-1, -1};
  int null = -1;
  ~Fds() {
    for (const int* pair : {socket, out, err, status}) {
      if (pair[0] >= 0) ::close(pair[0]);
      if (pair[1] >= 0) ::close(pair[1]);
    }
    if (null >= 0) ::close(null);
  }
  bool Open() {
    null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    return null >= 0 && ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socket) == 0 &&
           ::pipe2(out, O_CLOEXEC) == 0 && ::pipe2(err, O_CLOEXEC) == 0 && ::pipe2(status, O_CLOEXEC) == 0;
  }
};

struct ChildPlan {
  const char* path;
  char* const* argv;
  char* const* environment;
  const char* cwd;
  pid_t parent;
  int socket, out, err, null, status;
};

/// Between fork and exec: async-signal-safe calls only. Ends in exec or in the errno on the status pipe.
[[noreturn]] void BecomeWorker(const ChildPlan& plan) {
  int error = 0;
  // Lifted above every number that is about to be given away.
  const int sources[5] = {plan.null, plan.out, plan.err, plan.socket, plan.status};
  int lifted[5];
  for (int i = 0; i < 5; ++i) lifted[i] = ::fcntl(sources[i], F_DUPFD_CLOEXEC, 16);
  for (int i = 0; i < 5 && error == 0; ++i) {
    if (lifted[i] < 0 || ::dup2(lifted[i], i) != i) error = errno;
  }
  ::fcntl(kStatusFd, F_SETFD, FD_CLOEXEC);
  ::close_range(kStatusFd + 1, ~0U, 0);
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) ::_exit(127);
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::umask(077);
  if (error == 0 && ::chdir(plan.cwd) != 0) error = errno;
  if (error == 0) {
    ::execve(plan.path, plan.argv, plan.environment);
    error = errno;
  }
  [[maybe_unused]] const ssize_t ignored = ::write(kStatusFd, &error, sizeof error);
  ::_exit(127);
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const auto& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void SetNonBlocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

int64_t ResidentOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

std::string SignalName(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : std::string("SIG") + name;
}

Result<std::unique_ptr<ChildProcess>> ChildProcess::Spawn(const SpawnRequest& request) {
  Fds fds;
  if (!fds.Open()) return Fail(std::string("cannot open pipes for a worker: ") + std::strerror(errno));
  auto environment = request.environment;
  environment.push_back("ULPSCOPE_FD=" + std::to_string(kWorkerFd));
  const auto argv = Pointers(request.argv), envp = Pointers(environment);
  const ChildPlan plan{.path = request.argv.front().c_str(),
                       .argv = argv.data(),
                       .environment = envp.data(),
                       .cwd = request.cwd.c_str(),
                       .parent = ::getpid(),
                       .socket = fds.socket[1],
                       .out = fds.out[1],
                       .err = fds.err[1],
                       .null = fds.null,
                       .status = fds.status[1]};
  const pid_t pid = ForkKept();
  if (pid == 0) BecomeWorker(plan);
  if (pid < 0) return Fail(std::string("cannot fork a worker: ") + std::strerror(errno));
  std::unique_ptr<ChildProcess> child(new ChildProcess);
  child->pid_ = pid;
  child->token_ = request.token;
  child->pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  for (int* end : {&fds.socket[1], &fds.out[1], &fds.err[1], &fds.status[1]})
    ::close(std::exchange(*end, -1));
  int error = 0;
  ssize_t got;
  do got = ::read(fds.status[0], &error, sizeof error);
  while (got < 0 && errno == EINTR);
  if (got > 0) return Fail("cannot start " + request.argv.front() + ": " + std::strerror(error));
  if (child->pidfd_ < 0) return Fail(std::string("pidfd_open: ") + std::strerror(errno));
  child->socket_ = std::exchange(fds.socket[0], -1);
  child->out_ = std::exchange(fds.out[0], -1);
  child->err_ = std::exchange(fds.err[0], -1);
  for (const int fd : {child->socket_, child->out_, child->err_}) SetNonBlocking(fd);
  ::fcntl(child->out_, F_SETPIPE_SZ, kPipeBytes);
  return child;
}

ChildProcess::~ChildProcess() {
  Kill();
  for (const int fd : {pidfd_, socket_, out_, err_}) {
    if (fd >= 0) ::close(fd);
  }
}

bool ChildProcess::WaitForEnd(int milliseconds) const {
  if (reaped_) return true;
  pollfd poll_fd{.fd = pidfd_, .events = POLLIN, .revents = 0};
  int ready;
  do ready = ::poll(&poll_fd, 1, milliseconds);
  while (ready < 0 && errno == EINTR);
  return ready > 0;
}

bool ChildProcess::HasEnded() const { return WaitForEnd(0); }

Ending ChildProcess::Kill() {
  if (reaped_) return ending_;
  // Its descendants are found while it lives: a child may have left its group, its session and its
  // environment.
  const std::vector<ProcessId> descendants = DescendantsOf(pid_);
  // The zombie keeps its number until it is reaped, so the group that is killed here is the right one.
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  ForgetKept(pid_);
  for (const ProcessId& each : descendants) KillIfStill(each);
  if (WIFSIGNALED(status))
    ending_.signal = WTERMSIG(status);
  else
    ending_.status = WEXITSTATUS(status);
  if (!token_.empty()) KillAllMarked(token_);
  return ending_;
}

bool ChildProcess::IsStopped() const {
  const auto stat = reaped_ ? std::nullopt : ReadStat(pid_);
  return stat && (stat->state == 'T' || stat->state == 't');
}

int64_t ChildProcess::ResidentBytes() const { return ResidentOf(pid_); }

int64_t ChildProcess::GroupResidentBytes() const {
  int64_t bytes = 0;
  for (const auto& [pid, stat] : AllProcesses()) {
    if (stat.group == pid_) bytes += ResidentOf(pid);
  }
  return bytes;
}

}  // namespace ulpscope
