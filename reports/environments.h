// Compares the Python environments of one run (columns torch-inductor, torch-inductor:env=torch-2.15.0) as if each were
// a run of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/model/run_report.h"
#include "reports/run_diff.h"

namespace ulpscope {

/// Those that a report's columns name, "default" first where a column names none, the others in alphabetical order.
std::vector<std::string> EnvironmentsOf(const RunReport& report);

/// The part of a report that one environment computed, with backend names without the environment. A divergence between
/// environments is not part of it.
RunReport OfEnvironment(const RunReport& report, std::string_view environment);

/// The same without the backends that `other` (another part) does not have.
RunReport WithBackendsOf(RunReport report, const RunReport& other);

struct EnvironmentDiff {
  std::string before, after;
  RunDiff diff;
};

/// Each environment of a run against the first one that has a backend in common with it; empty where there is but one.
std::vector<EnvironmentDiff> CompareEnvironments(const RunReport& report);

}  // namespace ulpscope
