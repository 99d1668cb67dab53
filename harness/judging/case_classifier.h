// From the bits of one case's values to their classifications, by the oracle of that case.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/judge/classify.h"
#include "harness/judge/non_finite.h"
#include "harness/judge/open_piece.h"
#include "harness/model/ledger.h"
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
  /// The shape that the program gives a value; nothing where no oracle says it.
  std::optional<Shape> ShapeOf(const std::string& value);
  /// Of an opened program each step by itself; of a case that has one, what is demanded; of all others every value.
  Classified Classify(const Observation& observation);
  /// `names` alone, each as one joint model of the whole program.
  Classified ClassifyJointly(const Observation& observation, const std::set<std::string>& names);
  /// Of an opened program: what was rounded on the way to each of these values, as `observation` of the program that was
  /// asked has them (harness/judge/asked.h); those of which nothing is known are left out.
  Classified ClassifyAsAsked(const Observation& observation, const std::set<std::string>& names);
  /// Elements, by value, in which backends differ: they are looked at besides the sample (harness/judge/local.h). `sizes`: of these
  /// values.
  void LookAt(std::map<std::string, std::vector<int64_t>> elements,
              const std::map<std::string, int64_t>& sizes);
  /// Those that no sample holds.
  const std::map<std::string, std::vector<int64_t>>& BeyondSample() const { return beyond_sample_; }
  /// The form in which a step was computed, where that is not its own and the elements in which backends differ show it: what an
  /// earlier look at one backend alone could not know.
  void NameForms(const Observation& observation, Classified* classified);
  /// Puts the errors of a value against the exact result of the whole program into `result`, of as many elements as a moment allows:
  /// the same quantity for every backend, however its value was judged.
  void MeasureWhole(const std::string& value, const TensorData& observed, Classification* result);
  /// Which of two results of `value` is nearer to the exact result of the whole program, in which casts between floating dtypes round nothing
  /// either: else a backend that leaves a cast out, and is the nearer for it, would seem to err.
  std::optional<Nearness> NearnessOf(const std::string& value, const TensorData& a, const TensorData& b);
  /// Elements of a value with their exact results in that program, as many as a moment allows; null without an oracle of it.
  const ExactElements* UnroundedOf(const std::string& value, const Shape& of);
  /// Of a program as it was asked: whether `value` is infinite or NaN where the exact result is not.
  std::optional<NonFinite> FindNonFiniteValue(const std::string& value, const TensorData& observed);
  /// Of an opened program, or one of a single step: the steps on the way to `value` in which infinities and NaNs begin.
  std::vector<NonFinite> FindBirthsOf(const std::string& value,
                                      const std::map<std::string, TensorData>& values);
  /// What its oracle has done so far.
  OracleCounts Counts() const;

  /// Opens oracles of this case's engine. This outlives it.
  OpenPiece PieceOracle() const;

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
  Classified ClassifyBits(const std::map<std::string, TensorData>& values);
  void Open();
  /// Elements of a value of the whole program with their exact results, as many as a moment allows; null without an oracle of it.
  const ExactElements* WholeOf(const std::string& value, const Shape& of);
  const ExactElements* ExactOf(const CaseOracle& oracle, const std::string& value, const Shape& of,
                               std::map<std::string, ExactElements>* known) const;

  /// The program whose steps are judged one by one.
  const Case& Program() const { return settled_ ? *settled_ : case_; }

  const Case& case_;
  std::optional<Case> settled_;  ///< of an opened program (harness/casefile/open.h)
  int64_t seed_;
  OracleEngine engine_;
  std::vector<std::pair<std::map<std::string, TensorData>, Classified>> done_;
  std::map<std::string, TensorData> inputs_;
  std::map<std::string, std::vector<int64_t>> looked_at_, beyond_sample_;
  std::map<std::string, ExactElements> whole_;  ///< of values of the whole program
  std::map<std::string, ExactElements> unrounded_;
  std::unique_ptr<CaseOracle> oracle_;
  std::unique_ptr<CaseOracle>
      unrounded_oracle_;  ///< of UnroundedOf; null before it is asked, and where there is none
  bool unrounded_opened_ = false;
  std::string no_oracle_;  ///< why there is none
  std::string no_inputs_;
  OracleCounts pieces_;  ///< what the oracles of single steps have done
  bool opened_ = false;
};

std::string_view Name(OracleEngine engine);  ///< fast boost

/// What the steps give that cast to a floating dtype.
std::set<std::string> FloatingCasts(const Case& c);

}  // namespace ulpscope
