// One case of a run, judged on every backend.
#pragma once

#include <string>
#include <vector>

#include "harness/judge/knob_effect.h"
#include "harness/judging/run_to_judge.h"
#include "harness/model/budget.h"
#include "harness/model/ledger.h"
#include "harness/model/run_report.h"

namespace ulpscope {

struct JudgedCase {
  std::vector<CaseResult> results;
  std::vector<Divergence> divergences;
  std::vector<AccountEntry> account;
  std::vector<Ledger> ledgers;
  std::vector<ErrorBudget> budgets;
  std::vector<KnobComparison> knobs;
  std::vector<std::string> left_out;  ///< the results that a time limit left out, a phrase each
};

/// Error: the record cannot be read.
Result<JudgedCase> JudgeCaseOfRun(const RunToJudge& run, const Case& test_case);

/// The report entry for a case that there was no time to judge.
JudgedCase CaseNotJudged(const RunToJudge& run, const Case& test_case);

}  // namespace ulpscope
