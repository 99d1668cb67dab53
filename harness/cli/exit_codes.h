// Exit codes of the program.
#pragma once

namespace ulpscope {

/// Exit codes (README): 0 conforms, 1 does not, 2 interrupted, 3 a bug of ours, 4 usage or invalid case, 5
/// nothing selected or nothing checked, 6 incomplete: a backend failed, or a limit of time (--minutes) left something out.
inline constexpr int kExitNot = 1;
inline constexpr int kExitInterrupted = 2;
inline constexpr int kExitBug = 3;
inline constexpr int kExitUsage = 4;
inline constexpr int kExitNothing = 5;
inline constexpr int kExitIncomplete = 6;

}  // namespace ulpscope
