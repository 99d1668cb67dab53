// One plain sentence per divergence: which backends round or differ in what, and an element that shows it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/judge/deed.h"
#include "harness/judge/graph_execution.h"
#include "harness/judge/side.h"
#include "harness/model/tensor_diff.h"

namespace ulpscope {

/// A claim, an element that shows it (": `y[0]` is 2 on a and 2.5 on b"; "" without one), and one side's behaviour.
struct Sentence {
  std::string claim, witness = {}, summary = {};

  std::string Text() const { return claim + witness + "."; }
};

/// "rounds a value to bfloat16" of "rounds `y` to bfloat16".
std::string OfAnyValue(std::string text, const std::string& value);
Sentence OutcomeSentence(const Side& left, const Side& right);
/// `left` and `right` are dtype names, "none" for a value that does not exist.
Sentence DtypeSentence(const Side& a, const Side& b, const std::string& value, std::string_view left,
                       std::string_view right);
/// `although` is added to the side that does not round (", although its graph converts").
Sentence PrecisionSentence(const Case& test_case, const Side& a, const Side& b, const std::string& value,
                           std::string_view basis, std::string_view although);
/// For one step that each of `doers` computes differently from the expected, in the same way, and none of `others`.
Sentence DeedSentence(const Side& doers, const Side& others, const std::string& value, const Deed& deed,
                      std::string_view basis, std::string_view although);
/// For one step that nothing explains on `who`: findings about its errors, and an element.
Sentence UnexplainedSentence(const Side& who, const Side& others, const std::string& value);
/// How the value was computed, as far as the numbers show; open choices are left out.
std::string DescribeClass(const Case& test_case, const std::string& value, const ValueResult& result);
Sentence GraphGapSentence(const std::string& backend, const GraphGap& gap);
/// The operands of a step that gives a value in which two sides differ.
struct DifferingOperands {
  std::string everywhere;          ///< an operand that differs wherever the value does; empty without one
  std::vector<std::string> names;  ///< those that differ somewhere; empty if the step's operands are unknown
  int64_t from_equal = 0;          ///< elements of a carried value in which no operand differs
};
/// For the kinds order, bits, value, special and carried. `differences`: for every pair of one of `a` and one of `b`,
/// the representatives' first. Clears `has_cause` if only the size of the difference is known; sets the summary.
std::string DifferenceSentence(Divergence* divergence, const Side& a, const Side& b,
                               std::span<const TensorDifference* const> differences,
                               const DifferingOperands& operands);
/// Whether infinities can come of too large numbers alone, or of divisions by zero and the like too.
enum class Infinity { kOverflow, kAny };
/// For a value that is infinite or NaN on one side where the other is finite: side, kind and number of elements.
Sentence RangeSentence(const Side& a, const Side& b, const std::string& value, Infinity infinity);
/// The effect of observing all steps on one backend.
struct ObservedChange {
  std::string backend;
  TensorDifference of;               ///< its value as requested, compared with the one beside its steps
  std::vector<std::string> same_as;  ///< backends of the other side whose bits it then has
};
/// The evidence that the steps of another run give about a divergence: " Observing all steps changes y on A (17 of 64
/// elements, by up to 3 ulp); there, ...", with those `steps` in which one of `changed` has a behaviour that a backend
/// on the other side does not have; else no step shows the reason. `steps`: null if the divergence has a cause.
std::string ObservedStepsSentence(const Divergence& divergence, const std::vector<ObservedChange>& changed,
                                  const std::vector<Divergence>* steps);
Sentence CastsSentence(const Side& a, const Side& b, const std::string& stage, std::span<const Cast> left,
                       std::span<const Cast> right);

}  // namespace ulpscope
