// Looks through /proc.
#include "harness/run/descendants.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <system_error>

#include "harness/run/environment.h"

namespace ulpscope {

std::string ReadUpTo(int fd, size_t bytes) {
  std::string text;
  char buffer[8192];
  for (ssize_t got; text.size() < bytes && (got = ::read(fd, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

std::string ReadProc(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::string text = ReadUpTo(fd, size_t{1} << 20);
  ::close(fd);
  return text;
}

/// /proc/PID/stat. The name in it may hold anything, so it is read from the end of that.
std::optional<ProcessStat> ReadStat(pid_t pid) {
  const std::string text = ReadProc("/proc/" + std::to_string(pid) + "/stat");
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  ProcessStat stat;
  int parent = 0, group = 0;
  unsigned long long started = 0;
  // Fields 3, 4, 5 and 22 of proc(5).
  if (std::sscanf(text.c_str() + end + 1,
                  " %c %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
                  &stat.state, &parent, &group, &started) != 4)
    return std::nullopt;
  stat.parent = parent;
  stat.group = group;
  stat.started = started;
  return stat;
}

std::map<pid_t, ProcessStat> AllProcesses() {
  std::map<pid_t, ProcessStat> all;
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator("/proc", error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    const auto pid = static_cast<pid_t>(std::strtol(it->path().filename().c_str(), nullptr, 10));
    if (pid <= 1) continue;
    if (const auto stat = ReadStat(pid)) all.emplace(pid, *stat);
  }
  return all;
}

namespace {

/// The children that this process has started itself.
struct KeptChildren {
  std::mutex mutex;
  std::set<pid_t> pids;
};

KeptChildren& Kept() {
  static KeptChildren kept;
  return kept;
}

/// How many there were; those that have ended are reaped.
int KillOrphansOnce() {
  int orphans = 0;
  for (const auto& [pid, stat] : AllProcesses()) {
    if (stat.parent != ::getpid()) continue;
    // Held while it is killed: a worker that is being started is kept before its number is known to anybody else.
    const std::lock_guard lock(Kept().mutex);
    if (Kept().pids.contains(pid)) continue;
    ++orphans;
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  return orphans;
}

}  // namespace

void AdoptOrphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

void KillOrphans() {
  constexpr int kMostRounds = 1000;  // each ends a generation: children of killed processes become ours
  for (int round = 0; round < kMostRounds && KillOrphansOnce() > 0; ++round) {
  }
}

pid_t ForkKept() {
  const std::lock_guard lock(Kept().mutex);
  const pid_t pid = ::fork();
  if (pid > 0) Kept().pids.insert(pid);
  return pid;
}

void ForgetKept(pid_t pid) {
  const std::lock_guard lock(Kept().mutex);
  Kept().pids.erase(pid);
}

std::vector<ProcessId> DescendantsOf(pid_t ancestor) {
  const auto all = AllProcesses();
  std::multimap<pid_t, pid_t> children;
  for (const auto& [pid, stat] : all) children.emplace(stat.parent, pid);
  std::vector<ProcessId> found;
  std::vector<pid_t> pending{ancestor};
  std::set<pid_t> seen{ancestor};
  while (!pending.empty()) {
    const auto [first, last] = children.equal_range(pending.back());
    pending.pop_back();
    for (auto child = first; child != last; ++child) {
      if (!seen.insert(child->second).second) continue;
      found.push_back({.pid = child->second, .started = all.at(child->second).started});
      pending.push_back(child->second);
    }
  }
  return found;
}

void KillIfStill(const ProcessId& process) {
  const auto stat = ReadStat(process.pid);
  if (stat && stat->started == process.started) ::kill(process.pid, SIGKILL);
}

int KillMarked(const std::string& token) {
  const std::string mark = std::string(kTokenVariable) + "=" + token;
  const bool prefix = token.ends_with('.');
  int killed = 0;
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator("/proc", error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    const long pid = std::strtol(name.c_str(), nullptr, 10);
    if (pid <= 1 || pid == ::getpid()) continue;
    const std::string text = '\0' + ReadProc(it->path() / "environ");
    std::string sought = '\0' + mark;
    if (!prefix) sought += '\0';
    if (text.find(sought) != std::string::npos && ::kill(static_cast<pid_t>(pid), SIGKILL) == 0) ++killed;
  }
  return killed;
}

void KillAllMarked(const std::string& token) {
  constexpr int kMostRounds = 50, kCleanRounds = 3;
  // A process that the kernel lists may be gone when it is read, and have left a child that the list does not name, so
  // a single scan that finds nothing proves nothing. A process in execve has no environment for a moment, which is
  // longer on a busy machine, so each later scan waits longer.
  for (int round = 0, clean = 0; round < kMostRounds && clean < kCleanRounds; ++round) {
    if (round > 0) ::usleep(1000U << (2 * clean));
    clean = KillMarked(token) > 0 ? 0 : clean + 1;
  }
}

}  // namespace ulpscope
