// The derivation of one result: the request, the observation, the difference from other backends, the element that
// proves it, the nearest rival, the trace, and the command that repeats it.
#pragma once

#include <string>

#include "harness/model/run_report.h"
#include "reports/console.h"
#include "reports/explanation.h"

namespace ulpscope {

/// The essence alone, in kMostExplainedLines at most, unless verbose: that shows every model and every stage.
std::string WriteExplanation(const RunReport& report, const CaseResult& result,
                             const Explanation& explanation, const ConsoleOptions& options);

}  // namespace ulpscope
