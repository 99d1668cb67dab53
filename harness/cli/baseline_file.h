// Editing cases/deviations.yaml line by line: an entry is one line of its own, and every other line stays as it is.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/base/result.h"
#include "harness/model/deviation.h"

namespace ulpscope {

/// "- {case: "...", backend: "...", ...}" without a newline. Empty fields are left out.
std::string DeviationLine(const Deviation& deviation);

/// `text` with the entries added at its end.
std::string WithDeviations(const std::string& text, const std::vector<Deviation>& added);

/// `text` without the given lines, counted from 1.
std::string WithoutLines(const std::string& text, const std::set<int>& lines);

/// "2026-11-22" of this moment, in UTC.
std::string Today();

/// True for a day that there is, as YYYY-MM-DD.
bool IsDay(const std::string& text);

}  // namespace ulpscope
