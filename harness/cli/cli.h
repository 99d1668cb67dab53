// The command line: one function for all of it, one file per command.
//
//   main -> RunCommandLine -> CLI11 -> the command's callback -> exit code
//
// To add a command: a file command_<name>.cc with Add<Name>Command, and its line in commands.h and cli.cc.
#pragma once

namespace ulpscope {

/// Exit codes (README): 0 conforms, 1 does not, 2 interrupted, 3 a bug of ours, 4 usage or invalid case, 5
/// nothing selected, 6 incomplete.
inline constexpr int kExitNot = 1;
inline constexpr int kExitUsage = 4;
inline constexpr int kExitNothing = 5;

/// Parses and runs; returns the exit code.
int RunCommandLine(int argc, const char* const* argv);

}  // namespace ulpscope
