// From a recorded run to its report. One way for all: `run` judges what it has just journalled, `judge`,
// `report` and `explain` judge what lies in a run folder, so that a record gives the same verdicts wherever
// and whenever it is read.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "harness/cli/workspace.h"
#include "harness/judge/judge.h"
#include "harness/model/oracle.h"
#include "harness/record/journal.h"
#include "oracles/oracle.h"

namespace ulpscope {

/// What the exact oracle and the classifier say about one observation, or what of ours broke on the way.
struct Classified {
  std::map<std::string, Classification> values;
  std::string fault;
};

/// Classifies observations of one case; its oracle is opened once, and equal bits are classified once:
/// backends that differ in a knob mostly agree. Not for several threads at a time.
class CaseClassifier {
 public:
  CaseClassifier(const Case& test_case, int64_t seed, OracleEngine engine = OracleEngine::kFast)
      : case_(test_case), seed_(seed), engine_(engine) {}
  Classified Classify(const Observation& observation);
  /// What its oracle has done so far.
  OracleCounts Counts() const { return oracle_ == nullptr ? OracleCounts{} : oracle_->Counts(); }

 private:
  Classified ClassifyBits(const Observation& observation);

  const Case& case_;
  int64_t seed_;
  OracleEngine engine_;
  std::vector<std::pair<std::map<std::string, TensorData>, Classified>> done_;
  std::unique_ptr<CaseOracle> oracle_;
  std::string no_oracle_;  ///< why there is none
  bool opened_ = false;
};

/// Classifications made while a run went on, by (case, backend).
using ClassifiedRun = std::map<std::pair<std::string, std::string>, Classified>;

/// Judges `run`. `workspace` holds its cases; one that is not there or has changed since the run (another
/// digest) is an error. `known` saves work; what it lacks is classified here, on all cores. `on_case` is told
/// of each case as it is done. `counted` is what the oracles behind `known` did.
Result<RunReport> JudgeRun(const RecordedRun& run, const Workspace& workspace, ClassifiedRun known,
                           const std::function<void(const std::string&)>& on_case,
                           OracleEngine engine = OracleEngine::kFast, OracleCounts counted = {});

}  // namespace ulpscope
