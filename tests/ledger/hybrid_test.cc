// Programs with values in the place of steps.
#include "harness/ledger/hybrid.h"

#include <gtest/gtest.h>

#include <optional>

#include "harness/casefile/load.h"
#include "harness/casefile/open.h"

namespace ulpscope {
namespace {

Case OpenedOf(const std::string& program, const std::string& observe) {
  const std::string text =
      "about: x\ncases:\n  - name: c\n    tensors: {x: {dtype: bfloat16, shape: [2, 3], fill: normal}, w: "
      "{dtype: bfloat16, shape: [2, 3], "
      "fill: normal}}\n    program: " +
      program + "\n    observe: " + observe + "\n";
  LoadResult loaded = LoadCaseText(text, "c.yaml", "c", Vocabulary{});
  for (const auto& error : loaded.errors) ADD_FAILURE() << error.Text();
  return Opened(loaded.cases.at(0)).value();
}

std::vector<std::string> StepsOf(const Case& c) {
  std::vector<std::string> names;
  for (const Step& step : c.program) names.push_back(step.op + " " + step.as);
  return names;
}

std::vector<std::string> TensorsOf(const Case& c) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : c.tensors) names.push_back(tensor.name);
  return names;
}

const char* const kProgram =
    "[{op: mul, of: [x, w], as: p}, {op: transpose, of: [p], dim0: 0, dim1: 1, as: t}, {op: exp, of: [t], "
    "as: e}, "
    "{op: add, of: [x, w], as: s}, {op: sum, of: [e], dim: 0, as: r}]";

NamedTensors Values() {
  return {{"p", TensorData::Zeros(DType::kBfloat16, {2, 3})},
          {"t", TensorData::Zeros(DType::kBfloat16, {3, 2})},
          {"e", TensorData::Zeros(DType::kBfloat16, {3, 2})},
          {"s", TensorData::Zeros(DType::kBfloat16, {2, 3})},
          {"r", TensorData::Zeros(DType::kBfloat16, {2})}};
}

NamedTensors Inputs() {
  return {{"x", TensorData::Zeros(DType::kBfloat16, {2, 3})},
          {"w", TensorData::Zeros(DType::kBfloat16, {2, 3})}};
}

NamedTensors Some(const std::vector<std::string>& names) {
  NamedTensors some;
  for (const auto& name : names) some.insert(*Values().find(name));
  return some;
}

TEST(ComputedValues, AreTheStepsButForViews) {
  EXPECT_EQ(ComputedValues(OpenedOf(kProgram, "[r]")), (std::vector<std::string>{"p", "e", "s", "r"}));
}

TEST(ReadByLibraries, AreTheOperandsOfProductsBehindViews) {
  const Case opened = OpenedOf(
      "[{op: mul, of: [x, w], as: p}, {op: transpose, of: [p], dim0: 0, dim1: 1, as: t}, {op: exp, of: [w], "
      "as: e}, "
      "{op: matmul, of: [e, t], as: r}, {op: exp, of: [r], as: s}]",
      "[s]");
  EXPECT_EQ(ReadByLibraries(opened), (std::set<std::string>{"e", "p"}));
}

TEST(WithGiven, KeepsWhatTheObservedValuesNeed) {
  const Case opened = OpenedOf(kProgram, "[r]");
  const GivenProgram nothing = WithGiven(opened, Inputs(), {}, {"r"});
  EXPECT_EQ(StepsOf(nothing.program), (std::vector<std::string>{"mul p", "transpose t", "exp e", "sum r"}));
  EXPECT_EQ(nothing.program.observe, std::vector<std::string>{"r"});
  const GivenProgram given = WithGiven(opened, Inputs(), Some({"p"}), {"r"});
  EXPECT_EQ(StepsOf(given.program), (std::vector<std::string>{"transpose t", "exp e", "sum r"}));
  EXPECT_EQ(TensorsOf(given.program), std::vector<std::string>{"p"}) << "nothing reads x and w any more";
  EXPECT_EQ(given.inputs.size(), 1u);
  EXPECT_EQ(given.program.tensors[0].dtype, DType::kBfloat16);
}

TEST(WithGiven, AViewIsComputedFromItsBase) {
  const GivenProgram given = WithGiven(OpenedOf(kProgram, "[r]"), Inputs(), Some({"p", "t"}), {"r"});
  EXPECT_EQ(StepsOf(given.program), (std::vector<std::string>{"transpose t", "exp e", "sum r"}));
}

TEST(WithGiven, AScopeStaysAroundWhatIsLeftOfIt) {
  const Case opened = OpenedOf(
      "[{op: no_grad, steps: [{op: mul, of: [x, w], as: p}, {op: exp, of: [p], as: e}]}, {op: no_grad, "
      "steps: [{op: add, of: [x, w], as: s}]}]",
      "[e, s]");
  const GivenProgram given = WithGiven(opened, Inputs(), Some({"p", "s"}), {"e"});
  ASSERT_EQ(given.program.program.size(), 1u) << "a scope that holds nothing goes";
  EXPECT_EQ(given.program.program[0].op, "no_grad");
  ASSERT_EQ(given.program.program[0].steps.size(), 1u);
  EXPECT_EQ(given.program.program[0].steps[0].as, "e");
}

TEST(StepByStep, ComputesEachValueFromTheGivenOnes) {
  const GivenProgram again = StepByStep(OpenedOf(kProgram, "[r]"), Inputs(), Values());
  EXPECT_EQ(StepsOf(again.program), (std::vector<std::string>{"mul p_again", "transpose t", "exp e_again",
                                                              "add s_again", "sum r_again"}));
  EXPECT_EQ(again.program.program[1].of[0].name, "p")
      << "the given product, not the one that is computed once more";
  EXPECT_EQ(again.program.observe, (std::vector<std::string>{"p_again", "e_again", "s_again", "r_again"}));
  EXPECT_EQ(TensorsOf(again.program), (std::vector<std::string>{"x", "w", "e", "p"})) << "nothing reads s, r";
}

}  // namespace
}  // namespace ulpscope
