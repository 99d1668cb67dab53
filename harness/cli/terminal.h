// The terminal: how wide it is, whether it takes colours, and safe ways to write to it.
#pragma once

#include <string>

#include "harness/base/result.h"
#include "reports/console.h"

namespace ulpscope {

/// The width of stdout, and colours where it is a terminal and NO_COLOR and TERM allow them; otherwise 120
/// columns without colours.
ConsoleOptions DetectConsole();

bool IsTerminal(int file_descriptor);

/// Text of our own to stdout (the thing asked for) and stderr (everything else). A closed pipe is not an
/// error.
void Print(const std::string& text);
/// The same for what was asked for as a file: a full disk is an error.
Result<void> PrintReport(const std::string& text);
void PrintError(const std::string& line);
/// "ulpscope: TEXT" to stderr, made safe: errors quote what files hold.
void PrintError(const Error& error);

}  // namespace ulpscope
