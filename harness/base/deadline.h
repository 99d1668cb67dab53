// A deadline for the whole process: whoever interrupts a run does not wait until what is being computed is done.
//
// Only work inside BeforeDeadline keeps the deadline: nothing else is ever ended by it, whenever the signal
// comes and whatever is computed after it.
#pragma once

#include <chrono>
#include <functional>

namespace ulpscope {

/// `left` from now on; safe in a signal handler.
void SetDeadline(std::chrono::milliseconds left) noexcept;
void ClearDeadline() noexcept;
/// Does `work`; false where the deadline had passed and ended it at a KeepDeadline of this thread.
[[nodiscard]] bool BeforeDeadline(const std::function<void()>& work);
/// Long computations call it now and then. Outside of BeforeDeadline it does nothing.
void KeepDeadline();

}  // namespace ulpscope
