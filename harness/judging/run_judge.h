// Turns a recorded run into its report. `run`, `judge`, `report` and `explain` all read a run folder through this, so a
// record gives the same verdicts wherever and whenever it is read. Classifications are recorded in the folder too
// (harness/record/classified.h) and taken from there; only `judge` classifies again.
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
  /// The exclusions to keep for each value: all, or those that a report shows (reports/decisive.h), to save memory.
  enum class Exclusions { kAll, kShown } exclusions = Exclusions::kAll;
  using Found = Classifications::Found;
  Found found = Found::kKept;                ///< kept in `classified` or dropped
  const ClassifiedWriter* writer = nullptr;  ///< and this, for who holds the run's lock
  double limit_minutes = 0;  ///< of the run and its judgement; 0: no limit that affects their end
};

/// Judges `run`. `workspace` holds its cases; a case that is missing or has changed since the run (another digest) is
/// an error. Results missing in `classified` are classified here, on all cores, until a deadline
/// (harness/base/deadline.h). The report lists cases that are not done by then as recorded and not judged.
Result<RunReport> JudgeRun(const RecordedRun& run, const Workspace& workspace, ClassifiedRun* classified,
                           const JudgeRunOptions& options = {});

}  // namespace ulpscope
