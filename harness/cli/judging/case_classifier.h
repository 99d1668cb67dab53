// From the bits of one case's values to their classifications, by the oracle of that case.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/judge/classify.h"
#include "harness/judge/open_piece.h"
#include "harness/model/oracle.h"
#include "harness/record/classified.h"
#include "oracles/oracle.h"

namespace ulpscope {

/// Classifies observations of one case; its oracle is opened once, and equal bits are classified once:
/// backends that differ in a knob mostly agree. Not for use by several threads at a time.
class CaseClassifier {
 public:
  CaseClassifier(const Case& test_case, int64_t seed, OracleEngine engine = OracleEngine::kFast)
      : case_(test_case), seed_(seed), engine_(engine) {}
  /// Of an opened program each step by itself; of a case that has one, what is demanded; of all others every value.
  Classified Classify(const Observation& observation);
  /// `names` alone, each as one joint model of the whole program.
  Classified ClassifyJointly(const Observation& observation, const std::set<std::string>& names);
  /// Of an opened program: what was rounded on the way to each of these values, as `observation` of the program that was
  /// asked has them (harness/judge/asked.h); those of which nothing is known are left out.
  Classified ClassifyAsAsked(const Observation& observation, const std::set<std::string>& names);
  /// What its oracle has done so far.
  OracleCounts Counts() const;

 private:
  /// Of values that are too many steps to be judged as one: whether honest arithmetic with or without roundings in between
  /// gives nearly all of their bits. It excludes nothing.
  void SayWhatFits(const std::map<std::string, TensorData>& values, ClassifyOptions options,
                   Classified* classified);
  /// What no model of the whole explains, by the ops that some framework makes of its one.
  void TryForms(const std::map<std::string, TensorData>& values, Classified* classified);
  /// No violation is proved where the ops that some framework makes of the one give the results as the contract asks.
  void DoubtViolations(const std::map<std::string, TensorData>& values, Classified* classified);
  /// Of one step that is not computed as it is written, what that gives.
  void ShowWritten(const std::map<std::string, TensorData>& values, Classified* classified);
  /// A program of one step, of which nothing is demanded, and which has many models (harness/judge/local.h).
  bool IsStepOfManyModels() const;
  std::map<std::string, Classification> StepByStep(const std::map<std::string, TensorData>& values);
  OpenPiece PieceOracle() const;
  Classified ClassifyBits(const std::map<std::string, TensorData>& values);
  void Open();

  const Case& case_;
  int64_t seed_;
  OracleEngine engine_;
  std::vector<std::pair<std::map<std::string, TensorData>, Classified>> done_;
  std::map<std::string, TensorData> inputs_;
  std::unique_ptr<CaseOracle> oracle_;
  std::string no_oracle_;  ///< why there is none
  std::string no_inputs_;
  OracleCounts pieces_;  ///< what the oracles of single steps have done
  bool opened_ = false;
};

std::string_view Name(OracleEngine engine);  ///< fast boost

}  // namespace ulpscope
