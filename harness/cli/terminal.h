// The terminal: how wide it is, whether it takes colours, and safe ways to write to it.
#pragma once

#include <string>
#include <vector>

#include "harness/base/result.h"
#include "reports/console.h"

namespace ulpscope {

/// The width of stdout, and colours where it is a terminal and NO_COLOR and TERM allow them; otherwise 120
/// columns without colours.
ConsoleOptions DetectConsole();

bool IsTerminal(int file_descriptor);

/// Text of our own to stdout (the requested output) and stderr (everything else). A closed pipe is not an
/// error: its reader has read enough. Any other failure is kept for PrintedWhole.
void Print(const std::string& text);
/// Print, with its failure at once.
Result<void> PrintReport(const std::string& text);
/// The first failure of Print in this process.
Result<void> PrintedWhole();
void PrintError(const std::string& line);
/// "ulpscope: TEXT" to stderr, made safe: errors quote what files hold.
void PrintError(const Error& error);
/// Each as "ulpscope: note: TEXT" to stderr.
void PrintNotes(const std::vector<std::string>& notes);

}  // namespace ulpscope
