// The deadline, as one number that a signal handler may write.
#include "harness/base/deadline.h"

#include <time.h>

#include <atomic>
#include <cstdint>

namespace ulpscope {
namespace {

static_assert(std::atomic<int64_t>::is_always_lock_free);
std::atomic<int64_t> g_deadline{0};  // nanoseconds of CLOCK_MONOTONIC; 0: none

thread_local int g_keepers = 0;  // of this thread: BeforeDeadline inside BeforeDeadline

/// Thrown by KeepDeadline, caught by BeforeDeadline alone. No std::exception, so that it is never taken for a
/// fault of the computation.
struct DeadlinePassed {};

int64_t Now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

void SetDeadline(std::chrono::milliseconds left) noexcept {
  g_deadline = Now() + std::chrono::nanoseconds(left).count();
}

void ClearDeadline() noexcept { g_deadline = 0; }

bool BeforeDeadline(const std::function<void()>& work) {
  struct Keeper {
    Keeper() { ++g_keepers; }
    ~Keeper() { --g_keepers; }
  };
  try {
    const Keeper keeper;
    work();
    return true;
  } catch (const DeadlinePassed&) {
    return false;
  }
}

void KeepDeadline() {
  if (g_keepers == 0) return;
  const int64_t deadline = g_deadline.load(std::memory_order_relaxed);
  if (deadline != 0 && Now() > deadline) throw DeadlinePassed();
}

}  // namespace ulpscope
