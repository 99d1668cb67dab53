// The auxiliary inputs of a case (harness/casefile/prove.h), which distinguish models that its own data does not.
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
  /// Joins `backend`'s results on the auxiliary inputs with those on the case's own data. `fault`: ulpscope's failure.
  Result<Proof> Join(const Case& test_case, const std::string& backend, const Observation& own,
                     const Classified& classified, std::string* fault);
  OracleCounts Counts() const;

 private:
  const RunToJudge& run_;
  std::vector<Companion> all_;
  std::vector<CaseClassifier> classifiers_;  ///< one each
};

}  // namespace ulpscope
