// Broken-invariant exit path.
#include "harness/base/check.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace ulpscope {
namespace {
std::function<void()>& Hook() {
  static std::function<void()> hook;
  return hook;
}
}  // namespace

void SetCheckHook(std::function<void()> hook) { Hook() = std::move(hook); }

void CheckFailed(const char* condition, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "ulpscope: internal error at %s:%d: %s (%s). This is a bug in ulpscope.\n", file, line,
               message.c_str(), condition);
  if (auto hook = std::exchange(Hook(), nullptr)) hook();
  std::fflush(nullptr);
  std::_Exit(3);
}

}  // namespace ulpscope
