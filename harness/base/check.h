// ULPSCOPE_CHECK: an invariant of our own code. When it breaks we are wrong: print, run the at-check hook,
// exit 3.
#pragma once

#include <functional>
#include <string>

namespace ulpscope {

/// Called once before the process exits on a broken invariant (the runner flushes its journal here).
void SetCheckHook(std::function<void()> hook);

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line, const std::string& message);

}  // namespace ulpscope

#define ULPSCOPE_CHECK(condition, message)                                              \
  do {                                                                                  \
    if (!(condition)) ::ulpscope::CheckFailed(#condition, __FILE__, __LINE__, message); \
  } while (false)

#ifdef __FAST_MATH__
#error "ulpscope must not be built with -ffast-math: it measures rounding"
#endif
