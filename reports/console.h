// The console report: findings first (what differs, on which backends, why). Then the matrix: cases down, backends
// across, the precision class in each cell, and rows in which all agree on one line; then the reasons for skips, what
// is not installed, every failing line with the command that repeats it, and the counts.
#pragma once

#include <string>

#include "harness/model/run_report.h"

namespace ulpscope {

struct ConsoleOptions {
  size_t columns = 120;
  enum class Color { kNever, kAlways } color = Color::kNever;
  enum class Verbosity {
    kQuiet,
    kNormal,
    kVerbose
  } verbosity = Verbosity::kNormal;  ///< quiet: failing lines and counts
  /// kKnobs: a sweep of knobs, whose columns are too many to read; the table of knobs instead of the matrix.
  enum class Subject { kMatrix, kKnobs } subject = Subject::kMatrix;
  /// kCounted: their number alone, for who lists them from report.json.
  enum class Findings { kListed, kCounted } findings = Findings::kListed;
};

/// External text is made safe for a terminal. Lines are at most `columns` wide, except single words and repro lines.
std::string WriteConsole(const RunReport& report, const ConsoleOptions& options);
/// The same without colours and without the list of findings.
std::string WriteTables(const RunReport& report);

}  // namespace ulpscope
