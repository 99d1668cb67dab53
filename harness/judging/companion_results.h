// The auxiliary inputs of a case (harness/casefile/prove.h): the same program on other inputs, which distinguish models
// that its own data does not.
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
  /// The evidence from `backend`'s runs on the auxiliary inputs, joined with that from the case's own data. A failure
  /// of ulpscope itself goes into `fault`.
  Result<Proof> Join(const Case& test_case, const std::string& backend, const Observation& own,
                     const Classified& classified, std::string* fault);
  /// The work of their oracles so far.
  OracleCounts Counts() const;

 private:
  const RunToJudge& run_;
  std::vector<Companion> all_;
  std::vector<CaseClassifier> classifiers_;  ///< one each
};

}  // namespace ulpscope
