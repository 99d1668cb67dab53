// The command line: one function for all of it, one file per command.
//
//   main -> RunCommandLine -> CLI11 -> the command's callback -> exit code
//
// To add a command: a file command_<name>.cc with Add<Name>Command, and its line in commands.h and cli.cc.
#pragma once

#include <string_view>

#include "harness/cli/exit_codes.h"

namespace ulpscope {

/// Parses and runs; returns the exit code. --version shows `commit`, if the program was built from one.
int RunCommandLine(int argc, const char* const* argv, std::string_view commit = {});

}  // namespace ulpscope
