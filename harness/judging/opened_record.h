// A case's instrumented program (harness/casefile/open.h), run on one backend, as evidence about the requested one.
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

  /// True if it is evidence.
  bool Says() const { return told.left_out.empty(); }
  /// True if this value has the same bits as without instrumentation.
  bool Keeps(const std::string& value) const;
};

/// The instrumented program on one backend; nothing if the case has none, or this run did not run it. `own`: the
/// results of the requested program there. Steps are left out if observing all of them changes `own` and the run has
/// the values that the backend stores anyway. A fault of the harness goes into `fault`.
Result<std::optional<OpenedRecord>> FindOpened(const RunToJudge& run, const std::optional<Case>& opened_case,
                                               const std::string& backend, const Observation& own,
                                               CaseClassifier* classifier, std::string* fault);

/// Judges values with too many steps by these, if the instrumented program computes the same bits.
void JudgeBySteps(const Case& test_case, const std::optional<OpenedRecord>& opened,
                  const std::optional<Case>& opened_case, Classified* classified);

}  // namespace ulpscope
