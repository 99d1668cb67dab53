// The instrumented program of a case (harness/casefile/open.h), in which every step is observed, as one backend ran it:
// the evidence that it gives about the requested program.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/judging/run_to_judge.h"
#include "harness/model/run_report.h"

namespace ulpscope {

struct OpenedRecord {
  RecordedResult record;
  std::map<std::string, Classification> steps = {};
  OpenedRun told = {};

  /// Whether it is any evidence.
  bool Says() const { return told.left_out.empty(); }
  /// Whether this value has the bits that it has where nothing else is observed.
  bool Keeps(const std::string& value) const;
};

/// The instrumented program on one backend; nothing if the case has none, or this run did not run it. `own`: the
/// results of the requested program there. Steps are left out if observing all of them changes `own` and the run has
/// the values that the backend stores anyway. A fault of the harness goes into `fault`.
Result<std::optional<OpenedRecord>> FindOpened(const RunToJudge& run, const std::optional<Case>& opened_case,
                                               const std::string& backend, const Observation& own,
                                               CaseClassifier* classifier, std::string* fault);

/// Judges values that have too many steps to be judged as one by their steps, if the instrumented program computes the
/// same bits.
void JudgeBySteps(const Case& test_case, const std::optional<OpenedRecord>& opened,
                  const std::optional<Case>& opened_case, Classified* classified);

}  // namespace ulpscope
