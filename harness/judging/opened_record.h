// The opened program of a case (harness/casefile/open.h), in which every step is observed, as one backend ran it: what it
// says of the program that was asked.
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

/// The opened program on one backend; nothing where the case has none, or this run did not run it. `own`: what the requested program gave
/// there. Steps are left out where observing all of them changes `own` and the run has the values that the backend stores anyway. A fault
/// of the harness goes into `fault`.
Result<std::optional<OpenedRecord>> FindOpened(const RunToJudge& run, const std::optional<Case>& opened_case,
                                               const std::string& backend, const Observation& own,
                                               CaseClassifier* classifier, std::string* fault);

/// What is too much to be judged as one, by its steps, where the opened program computes the same bits.
void JudgeBySteps(const Case& test_case, const std::optional<OpenedRecord>& opened,
                  const std::optional<Case>& opened_case, Classified* classified);

}  // namespace ulpscope
