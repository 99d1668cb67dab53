// Compares the Python environments of one run (columns torch-inductor, torch-inductor:env=torch-2.15.0) as if each were
// a run of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/model/run_report.h"
#include "reports/run_diff.h"

namespace ulpscope {

/// The environments in a report's columns, "default" first if a column names none, the others in alphabetical order.
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

/// Compares each environment of a run with the first one that shares a backend; empty if there is only one.
std::vector<EnvironmentDiff> CompareEnvironments(const RunReport& report);

}  // namespace ulpscope
