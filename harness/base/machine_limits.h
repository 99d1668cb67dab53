// A refusal by the machine (memory, threads, stack) ends the process with a line and an exit code, never with
// a signal.
#pragma once

#include <functional>
#include <optional>
#include <system_error>
#include <thread>

#include "harness/base/result.h"

namespace ulpscope {

/// From here on an uncaught exception, in any thread, ends the process with a line on stderr: with
/// `machine_code` if memory or threads are missing, else with `bug_code`. A process that runs workers needs
/// no more: they die with their parent, and a journal is whole up to its last record.
void EndWithALine(int machine_code, int bug_code);

/// Gives this process, the threads that it starts later and its children the stack that they need, whatever
/// the soft limit of `ulimit -s` is. An error if the hard limit does not allow it.
Result<void> TakeStack();

/// A thread that runs `work`; nothing where the machine has none left (`ulimit -u`, `ulimit -v`).
std::optional<std::thread> TryThread(std::function<void()> work);

}  // namespace ulpscope
