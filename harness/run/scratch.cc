// Folders of a run and their janitor.
#include "harness/run/scratch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "harness/run/descendants.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNamePrefix = "ulpscope-";
constexpr const char* kHalfMade = ".ulpscope-making-";
constexpr const char* kLock = ".lock";

std::string RandomHex() {
  unsigned char bytes[6] = {};
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) {
    const auto pid = static_cast<unsigned>(::getpid());
    std::memcpy(bytes, &pid, sizeof pid);
  }
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

fs::path TmpBase() {
  const char* tmp = std::getenv("TMPDIR");
  std::error_code error;
  if (tmp != nullptr && *tmp == '/' && fs::is_directory(tmp, error)) return tmp;
  return "/tmp";
}

fs::path ShmBase() { return ::access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : TmpBase(); }

/// True for a folder whose maker was killed while making it: it has had its first name for a minute.
bool IsHalfMade(const fs::path& dir) {
  std::error_code error;
  const auto written = fs::last_write_time(dir, error);
  return dir.filename().string().starts_with(kHalfMade) && !error &&
         fs::file_time_type::clock::now() - written > std::chrono::minutes(1);
}

/// Removes folders that an earlier run left behind: their lock is free.
void SweepStale(const fs::path& base) {
  std::error_code error;
  for (auto it = fs::directory_iterator(base, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const fs::path dir = it->path();
    struct stat status {};
    const bool half_made = IsHalfMade(dir);
    if (!half_made && !dir.filename().string().starts_with(kNamePrefix)) continue;
    if (::lstat(dir.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid())
      continue;
    const int fd = ::open((dir / kLock).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    std::error_code ignored;
    if (fd < 0 ? half_made : ::flock(fd, LOCK_EX | LOCK_NB) == 0) fs::remove_all(dir, ignored);
    if (fd >= 0) ::close(fd);
  }
}

/// A folder whose name others may sweep only once its lock is held: it is made under another name first.
Result<fs::path> MakeLocked(const fs::path& base, const std::string& token, int& lock_fd) {
  const fs::path hidden = base / (kHalfMade + token), dir = base / (kNamePrefix + token);
  if (::mkdir(hidden.c_str(), 0700) != 0)
    return Fail("cannot make a folder in " + base.string() + ": " + std::strerror(errno));
  lock_fd = ::open((hidden / kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_fd < 0 || ::flock(lock_fd, LOCK_EX | LOCK_NB) != 0 || ::rename(hidden.c_str(), dir.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    std::error_code ignored;
    fs::remove_all(hidden, ignored);
    return Fail("cannot make " + dir.string() + ": " + why);
  }
  return dir;
}

/// Waits until the other end of `pipe` is closed. Returns the processes that last descended from `harness`, except this
/// one; a process that started in the last half second before may be missing.
std::vector<ProcessId> WatchUntilClosed(int pipe, pid_t harness) {
  constexpr int kLookMs = 500;
  std::vector<ProcessId> seen;
  while (true) {
    pollfd waited{.fd = pipe, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waited, 1, kLookMs);
    char byte;
    if (ready > 0 && ::read(pipe, &byte, 1) == 0) return seen;
    if (ready != 0) continue;
    seen = DescendantsOf(harness);
    std::erase_if(seen, [](const ProcessId& each) { return each.pid == ::getpid(); });
  }
}

}  // namespace

void Scratch::Clean() const {
  KillAllMarked(token_ + ".");
  std::error_code ignored;
  fs::remove_all(shm_, ignored);
  fs::remove_all(tmp_, ignored);
}

Result<std::unique_ptr<Scratch>> Scratch::Create() {
  SweepStale(ShmBase());
  if (TmpBase() != ShmBase()) SweepStale(TmpBase());
  AdoptOrphans();
  std::unique_ptr<Scratch> scratch(new Scratch);
  scratch->token_ = RandomHex();
  scratch->shm_ = ULPSCOPE_TRY(MakeLocked(ShmBase(), scratch->token_ + "-shm", scratch->lock_fd_));
  // The workers' temporary files may be large: they belong on a disk.
  int tmp_lock = -1;
  scratch->tmp_ = ULPSCOPE_TRY(MakeLocked(TmpBase(), scratch->token_ + "-tmp", tmp_lock));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Fail(std::string("pipe: ") + std::strerror(errno));
  const pid_t harness = ::getpid();
  scratch->janitor_ = ForkKept();
  if (scratch->janitor_ == 0) {
    // The janitor: of the harness, only its own end of the pipe and the two locks stay open in it.
    ::setsid();
    ::prctl(PR_SET_NAME, "ulpscope-tidy");
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
    const int kept[3] = {ends[0], scratch->lock_fd_, tmp_lock};
    for (int fd = 0; fd < 1024; ++fd) {
      if (fd != kept[0] && fd != kept[1] && fd != kept[2]) ::close(fd);
    }
    ::close_range(1024, ~0U, 0);
    const auto last_seen = WatchUntilClosed(ends[0], harness);
    scratch->Clean();
    // Once the harness is gone, no process adopts those that have shed the token.
    for (const ProcessId& each : last_seen) KillIfStill(each);
    ::_exit(0);
  }
  ::close(ends[0]);
  ::close(tmp_lock);  // the janitor keeps it
  scratch->janitor_pipe_ = ends[1];
  if (scratch->janitor_ < 0) return Fail(std::string("fork: ") + std::strerror(errno));
  return scratch;
}

Scratch::~Scratch() {
  if (!shm_.empty()) Clean();
  KillOrphans();
  if (janitor_pipe_ >= 0) ::close(janitor_pipe_);
  if (janitor_ > 0) {
    while (::waitpid(janitor_, nullptr, 0) < 0 && errno == EINTR) {
    }
    ForgetKept(janitor_);
  }
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

}  // namespace ulpscope
