// What a run found, first: what parts, who, why. Then the matrix: cases down, backends across, in each cell the precision
// class, and rows in which all agree in one line; why things were skipped, what is not installed, every failing line
// with the command that repeats it, and the counts.
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

/// Text that others wrote is made safe for a terminal. Lines are at most `columns` wide, single words and
/// repro lines apart.
std::string WriteConsole(const RunReport& report, const ConsoleOptions& options);
/// The same without colours and without the list of findings.
std::string WriteTables(const RunReport& report);

}  // namespace ulpscope
