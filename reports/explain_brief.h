// The part of a derivation that fits a screen.
#pragma once

#include <string>

#include "harness/model/run_report.h"
#include "reports/console.h"
#include "reports/explanation.h"

namespace ulpscope {

/// One result, without verbosity.
std::string WriteBriefExplanation(const RunReport& report, const CaseResult& result,
                                  const Explanation& explanation, const ConsoleOptions& options);

/// The common results of the backends of one case and their differences, in at most as many lines.
std::string WriteCaseOverview(const RunReport& report, const std::string& case_id,
                              const Explanation& explanation, const ConsoleOptions& options);

}  // namespace ulpscope
