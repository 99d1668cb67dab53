// The companions of a case (harness/casefile/prove.h): the same program on further inputs, which tell apart what its own
// data do not.
#pragma once

#include <string>
#include <vector>

#include "harness/casefile/prove.h"
#include "harness/judge/combine.h"
#include "harness/judging/run_to_judge.h"

namespace ulpscope {

class CompanionResults {
 public:
  /// `run` outlives it.
  CompanionResults(const RunToJudge& run, const Case& test_case);
  bool empty() const { return all_.empty(); }
  /// What `backend` showed on them, joined with what it showed on the case's own data. What of ours broke goes into
  /// `fault`.
  Result<Proof> Join(const Case& test_case, const std::string& backend, const Observation& own,
                     const Classified& classified, std::string* fault);
  /// What their oracles have done so far.
  OracleCounts Counts() const;

 private:
  const RunToJudge& run_;
  std::vector<Companion> all_;
  std::vector<CaseClassifier> classifiers_;  ///< one each
};

}  // namespace ulpscope
