// A deadline for the whole process: whoever interrupts a run does not wait until what is being computed is done.
#pragma once

#include <chrono>

namespace ulpscope {

/// Thrown by KeepDeadline. No std::exception: nobody takes it for a fault of what was computed.
struct DeadlinePassed {};

/// `left` from now on; safe in a signal handler.
void SetDeadline(std::chrono::milliseconds left) noexcept;
void ClearDeadline() noexcept;
/// Long computations call it now and then; throws DeadlinePassed when one is set and has passed.
void KeepDeadline();

}  // namespace ulpscope
