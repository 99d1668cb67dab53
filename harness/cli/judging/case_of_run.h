// One case of a run, judged on every backend.
#pragma once

#include <vector>

#include "harness/cli/judging/run_to_judge.h"
#include "harness/judge/knob_effect.h"
#include "harness/model/run_report.h"

namespace ulpscope {

struct JudgedCase {
  std::vector<CaseResult> results;
  std::vector<Divergence> divergences;
  std::vector<KnobComparison> knobs;
};

/// An error where what is recorded cannot be read.
Result<JudgedCase> JudgeCaseOfRun(const RunToJudge& run, const Case& test_case);

/// What a report says of a case for whose judgement there was no time.
JudgedCase CaseNotJudged(const RunToJudge& run, const Case& test_case);

}  // namespace ulpscope
