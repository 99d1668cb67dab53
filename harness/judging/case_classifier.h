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

/// Classifies observations of one case. Its oracle is opened once, and equal bits are classified once, since backends
/// that differ in a knob mostly agree. Not for use by several threads at a time.
class CaseClassifier {
 public:
  CaseClassifier(const Case& test_case, int64_t seed, OracleEngine engine = OracleEngine::kFast)
      : case_(test_case), seed_(seed), engine_(engine) {}
  /// The shape that the program gives a value; nothing if no oracle knows it.
  std::optional<Shape> ShapeOf(const std::string& value);
  /// Classifies an instrumented program step by step, and another case by its demanded values, or else every value.
  Classified Classify(const Observation& observation);
  /// `names` alone, each as one joint model of the whole program.
  Classified ClassifyJointly(const Observation& observation, const std::set<std::string>& names);
  /// For an instrumented program: the intermediate roundings before each of these values, as `observation` of the
  /// requested program has them (harness/judge/asked.h). Values without a finding are left out.
  Classified ClassifyAsAsked(const Observation& observation, const std::set<std::string>& names);
  /// Elements, by value, in which backends differ, to be added to the sample (harness/judge/local.h), and values'
  /// sizes.
  void LookAt(std::map<std::string, std::vector<int64_t>> elements,
              const std::map<std::string, int64_t>& sizes);
  /// Those that are in no sample.
  const std::map<std::string, std::vector<int64_t>>& BeyondSample() const { return beyond_sample_; }
  /// Names the form of a step that was not computed in its own, if elements in which backends differ show it.
  void NameForms(const Observation& observation, Classified* classified);
  /// Puts the errors of a value against the exact result of the whole program into `result`, for as many elements as a
  /// moment allows: the same quantity for every backend, however its value was judged.
  void MeasureWhole(const std::string& value, const TensorData& observed, Classification* result);
  /// Which of two results of `value` is nearer to the exact result of the whole program without its casts between
  /// floating dtypes: with them, a backend that leaves a cast out, and is the nearer for it, would seem to err.
  std::optional<Nearness> NearnessOf(const std::string& value, const TensorData& a, const TensorData& b);
  /// Elements of a value with their exact results in that program, as many as a moment allows; null without an oracle of it.
  const ExactElements* UnroundedOf(const std::string& value, const Shape& of);
  /// For a requested program: whether `value` is infinite or NaN although the exact result is not.
  std::optional<NonFinite> FindNonFiniteValue(const std::string& value, const TensorData& observed);
  /// For an instrumented program, or one of a single step: the steps before `value` in which infinities and NaNs begin.
  std::vector<NonFinite> FindBirthsOf(const std::string& value,
                                      const std::map<std::string, TensorData>& values);
  OracleCounts Counts() const;

  /// Opens oracles with this case's engine. This object must outlive it.
  OpenPiece PieceOracle() const;

 private:
  /// For values after too many steps to be judged as one: whether conforming arithmetic with or without intermediate
  /// roundings gives nearly all of their bits. It excludes nothing.
  void SayWhatFits(const std::map<std::string, TensorData>& values, ClassifyOptions options,
                   Classified* classified);
  /// Explains results that no model of the whole explains by the ops that some framework uses instead.
  void TryForms(const std::map<std::string, TensorData>& values, Classified* classified);
  /// Withdraws a proved violation if the ops that some framework uses instead give the results under the contract.
  void DoubtViolations(const std::map<std::string, TensorData>& values, Classified* classified);
  /// Records the expected results of a single step that deviates from them.
  void ShowWritten(const std::map<std::string, TensorData>& values, Classified* classified);
  /// True for a program of one step without demands that has many models (harness/judge/local.h).
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
  std::optional<Case> settled_;  ///< of an instrumented program (harness/casefile/open.h)
  int64_t seed_;
  OracleEngine engine_;
  std::vector<std::pair<std::map<std::string, TensorData>, Classified>> done_;
  std::map<std::string, TensorData> inputs_;
  std::map<std::string, std::vector<int64_t>> looked_at_, beyond_sample_;
  std::map<std::string, ExactElements> whole_;  ///< of values of the whole program
  std::map<std::string, ExactElements> unrounded_;
  std::unique_ptr<CaseOracle> oracle_;
  std::unique_ptr<CaseOracle>
      unrounded_oracle_;  ///< of UnroundedOf; null before its first use, and if there is none
  bool unrounded_opened_ = false;
  std::string no_oracle_;  ///< why there is none
  std::string no_inputs_;
  OracleCounts pieces_;  ///< the work of single steps' oracles
  bool opened_ = false;
};

std::string_view Name(OracleEngine engine);  ///< fast boost

/// The results of steps that cast to a floating dtype.
std::set<std::string> FloatingCasts(const Case& c);

}  // namespace ulpscope
