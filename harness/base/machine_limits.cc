// Limits of the process.
#include "harness/base/machine_limits.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

namespace ulpscope {
namespace {

/// Linux's default soft limit; a thread, and a program that is started, reserves as much stack as the soft
/// limit allows.
constexpr rlim_t kUsualStack = rlim_t{8} << 20;
/// Thread-local data take 330 KiB of each stack. With 384 KiB a run of cases/blocks and its page ended well;
/// with 256 KiB no thread starts.
constexpr rlim_t kLeastStack = rlim_t{1} << 20;

int g_machine_code = 1, g_bug_code = 1;

[[noreturn]] void End(int code, const char* what, const char* why) {
  // Nothing here allocates.
  char line[512];
  const int length = std::snprintf(line, sizeof line, "ulpscope: %s%s\n", what, why);
  [[maybe_unused]] const ssize_t ignored =
      ::write(STDERR_FILENO, line, std::min(sizeof line - 1, static_cast<size_t>(std::max(0, length))));
  std::_Exit(code);
}

[[noreturn]] void OnTerminate() {
  try {
    if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    End(g_machine_code, "out of memory (ulimit -v, or the machine's)", "");
  } catch (const std::system_error& error) {
    End(g_machine_code, "the machine refuses: ", error.what());
  } catch (const std::exception& error) {
    End(g_bug_code, "internal error, this is a bug in ulpscope: ", error.what());
  } catch (...) {
  }
  End(g_bug_code, "internal error, this is a bug in ulpscope", "");
}

}  // namespace

void EndWithALine(int machine_code, int bug_code) {
  g_machine_code = machine_code;
  g_bug_code = bug_code;
  std::set_terminate(OnTerminate);
}

Result<void> TakeStack() {
  rlimit stack{};
  if (::getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur == RLIM_INFINITY ||
      stack.rlim_cur >= kUsualStack)
    return {};
  const rlim_t before = stack.rlim_cur;
  stack.rlim_cur = stack.rlim_max == RLIM_INFINITY ? kUsualStack : std::min(kUsualStack, stack.rlim_max);
  if (::setrlimit(RLIMIT_STACK, &stack) != 0) stack.rlim_cur = before;
  if (stack.rlim_cur < kLeastStack)
    return Fail(Problem("the stack is too small", std::to_string(stack.rlim_cur >> 10) + " KiB (ulimit -s)",
                        std::to_string(kLeastStack >> 10) + " KiB or more"));
  // The library has read the limit before main began.
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) == 0) {
    ::pthread_attr_setstacksize(&attributes, stack.rlim_cur);
    ::pthread_setattr_default_np(&attributes);
    ::pthread_attr_destroy(&attributes);
  }
  return {};
}

std::optional<std::thread> TryThread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

}  // namespace ulpscope
