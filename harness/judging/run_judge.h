// From a recorded run to its report. One way for all: `run`, `judge`, `report` and `explain` read a run
// folder, so that a record gives the same verdicts wherever and whenever it is read. What is classified is
// recorded there too (harness/record/classified.h) and taken from there; `judge` alone classifies anew.
#pragma once

#include "harness/base/result.h"
#include "harness/judging/case_classifier.h"
#include "harness/judging/run_to_judge.h"
#include "harness/model/run_report.h"
#include "harness/record/classified.h"
#include "harness/record/journal.h"
#include "harness/workspace/workspace.h"

namespace ulpscope {

struct JudgeRunOptions {
  OracleEngine engine = OracleEngine::kFast;
  /// Of the models that a value excludes: all, or those that a report shows (reports/decisive.h), which is what stays in memory for
  /// every case of a run.
  enum class Exclusions { kAll, kShown } exclusions = Exclusions::kAll;
  using Found = Classifications::Found;
  Found found = Found::kKept;                ///< `classified` is what it goes into
  const ClassifiedWriter* writer = nullptr;  ///< and this, for who holds the run's lock
  double limit_minutes =
      0;  ///< of the run and its judgement; 0: there is none, or it has nothing to do with how they end
};

/// Judges `run`. `workspace` holds its cases; one that is not there or has changed since the run (another
/// digest) is an error. What `classified` lacks is classified here, on all cores, until a deadline (harness/base/deadline.h): of a
/// case that is not done by then the report says that it is recorded and not judged.
Result<RunReport> JudgeRun(const RecordedRun& run, const Workspace& workspace, ClassifiedRun* classified,
                           const JudgeRunOptions& options = {});

}  // namespace ulpscope
