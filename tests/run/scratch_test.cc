// The scratch folders' janitor: what is marked is gone, also where it forks while it is looked for.
#include "harness/run/scratch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "harness/run/descendants.h"
#include "harness/run/environment.h"
#include "tests/support/draws.h"

namespace ulpscope {
namespace {

constexpr const char* kToken = "scratch-test.1";

/// Processes with the mark, zombies apart.
int Marked() {
  int found = 0;
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator("/proc", error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    found += ReadProc(it->path() / "environ").find(std::string(kTokenVariable) + "=" + kToken) !=
             std::string::npos;
  }
  return found;
}

TEST(KillAllMarked, FindsWhatIsForkedWhileItLooks) {
  const std::string mark = std::string(kTokenVariable) + "=" + kToken;
  // Leaves a process in a session of its own and is gone, as a worker that goes into the background does. A shell, since only what
  // was executed has its environment where /proc shows it.
  const std::string script = "(setsid sleep 100 &) ; exit 0";
  std::string shell = "/bin/sh", flag = "-c", text = script, path = "PATH=/usr/bin:/bin", marked = mark;
  char* const argv[] = {shell.data(), flag.data(), text.data(), nullptr};
  char* const environment[] = {path.data(), marked.data(), nullptr};
  int left = 0;
  for (int i = 0; i < testing::Draws(150); ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::execve(shell.c_str(), argv, environment);
      ::_exit(127);
    }
    ::usleep(static_cast<useconds_t>(i * 37 % 4000));
    KillAllMarked(kToken);
    ::kill(child, SIGKILL);  // it may not have been executed yet
    ::waitpid(child, nullptr, 0);
    KillAllMarked(kToken);
    left += Marked();
    if (Marked() > 0) KillMarked(kToken);
  }
  EXPECT_EQ(left, 0);
}

// Between the look into a folder of /proc and the reading of a file there the process may have gone.
TEST(ReadUpTo, OfAProcessThatIsGoneReadsNothing) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const int fd = ::open(("/proc/" + std::to_string(child) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_NE(ReadUpTo(fd, 4096), "");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::lseek(fd, 0, SEEK_SET);
  EXPECT_EQ(ReadUpTo(fd, 4096), "");
  ::close(fd);
  EXPECT_FALSE(ReadStat(child).has_value());
}

}  // namespace
}  // namespace ulpscope
