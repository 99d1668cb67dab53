// Hybrids with the exact program against the exact oracle, which shares no arithmetic with them.
#include "oracles/exact_rest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using testing::MakeStep;
using testing::Tensor;

using TensorsByName = std::map<std::string, TensorData>;

const DType kNarrow = DType::kBfloat16;

Case FiveSteps() {
  Case c;
  c.id = "test/rest";
  c.tensors = {Tensor("a", kNarrow, {6, 20}), Tensor("b", kNarrow, {20, 5})};
  c.program = {
      MakeStep("matmul", {"a", "b"}, "p"), MakeStep("sigmoid", {"p"}, "s"),
      MakeStep("transpose", {"s"}, "t", {{"dim0", testing::Integer(0)}, {"dim1", testing::Integer(1)}}),
      MakeStep("div", {"p", "s"}, "q"), MakeStep("matmul", {"q", "t"}, "r")};
  c.observe = {"p", "s", "t", "q", "r"};
  return c;
}

/// `c` with tensors in the place of the steps that give them.
std::vector<Reference> Exactly(Case c, TensorsByName inputs, const TensorsByName& given,
                               std::span<const int64_t> elements) {
  std::erase_if(c.program, [&](const Step& step) { return given.contains(step.as); });
  c.observe = {"r"};
  for (const auto& [name, data] : given) {
    c.tensors.push_back(Tensor(name, data.dtype, data.shape));
    inputs[name] = data;
  }
  OracleOptions options;
  options.engine = OracleEngine::kBoost;
  const auto oracle = OpenCaseOracle(c, inputs, options);
  return (*oracle)->References("r", elements);
}

std::vector<int64_t> EveryElement(int64_t count) {
  std::vector<int64_t> elements(static_cast<size_t>(count));
  std::iota(elements.begin(), elements.end(), 0);
  return elements;
}

/// The result of each step on its stored operands, rounded once to bfloat16.
TensorsByName StoredOf(const Case& c, const TensorsByName& inputs) {
  TensorsByName stored;
  for (const Step& step : c.program) {
    Case one = c;
    one.program = {step};
    one.observe = {step.as};
    one.tensors.clear();
    TensorsByName known;
    for (const Operand& operand : step.of) {
      const TensorData& data =
          stored.contains(operand.name) ? stored.at(operand.name) : inputs.at(operand.name);
      if (known.emplace(operand.name, data).second)
        one.tensors.push_back(Tensor(operand.name, data.dtype, data.shape));
    }
    const auto oracle = OpenCaseOracle(one, known);
    TensorData result = TensorData::Zeros(kNarrow, (*oracle)->Describe(step.as)->shape);
    const auto references = (*oracle)->References(step.as, EveryElement(result.size()));
    for (int64_t i = 0; i < result.size(); ++i)
      result.Set(i, RoundTo(references[static_cast<size_t>(i)].value(), *FormatOf(kNarrow)));
    stored.emplace(step.as, std::move(result));
  }
  return stored;
}

class ExactRests : public ::testing::Test {
 protected:
  std::unique_ptr<ExactRest> Open(TensorsByName with) {
    std::vector<StoredStep> steps;
    for (const char* name : {"p", "s", "q", "r"}) steps.push_back({.name = name, .data = with.at(name)});
    auto rest = OpenExactRest(c, inputs, {}, "r", std::move(steps));
    EXPECT_TRUE(rest) << (rest ? "" : rest.error().Text());
    return *std::move(rest);
  }

  Case c = FiveSteps();
  TensorsByName inputs = testing::NormalInputs(c, 5);
  TensorsByName stored = StoredOf(c, inputs);
  std::vector<int64_t> elements = EveryElement(36);
};

TEST_F(ExactRests, AreThoseOfTheExactOracleWithTheSameValuesGiven) {
  const auto rest = Open(stored);
  ASSERT_EQ(rest->steps().size(), 4u);
  std::vector<HybridOfSteps> hybrids;
  std::vector<TensorsByName> given;
  for (size_t count = 0; count < 4; ++count) {
    HybridOfSteps& hybrid = hybrids.emplace_back(HybridOfSteps{.given = std::vector<bool>(4, false)});
    given.emplace_back();
    for (size_t i = 0; i < count; ++i) {
      hybrid.given[i] = true;
      given.back().emplace(rest->steps()[i].name, rest->steps()[i].data);
    }
  }
  // More than are evaluated at once, so that several groups are made.
  for (size_t i = 0; i < 6; ++i) hybrids.push_back(hybrids[i % 4]);
  const auto values = rest->Evaluate(elements, hybrids);
  for (size_t i = 0; i < hybrids.size(); ++i) {
    const auto due = Exactly(c, inputs, given[i % 4], elements);
    for (size_t k = 0; k < elements.size(); ++k) {
      const double off = (values[i][k].hi - due[k].hi) + (values[i][k].lo - due[k].lo);
      EXPECT_LE(std::fabs(off), 0x1p-68 * std::fabs(due[k].hi) + due[k].err) << i << " " << k;
    }
  }
}

TEST_F(ExactRests, ErrorsOfStepsAreFromTheirOwnOperands) {
  TensorData& q = stored.at("q");
  int64_t largest = 0;
  for (int64_t i = 0; i < q.size(); ++i)
    largest = std::fabs(q.At(i)) > std::fabs(q.At(largest)) ? i : largest;
  q.Set(largest, 2 * q.At(largest));
  auto rest = Open(stored);
  rest->MeasureSteps(elements);
  EXPECT_GT(rest->steps()[0].error, 0x1p-12);
  EXPECT_LT(rest->steps()[0].error, 0x1p-8) << "a rounding to bfloat16";
  EXPECT_LT(rest->steps()[1].error, 0x1p-8) << "an element of q that is wrong is no error of what q rests on";
  EXPECT_GT(rest->steps()[2].error, 0x1p-4) << "of 30 elements the largest is twice what it should be";
}

TEST_F(ExactRests, AStepThatGivesTheExactResultHasNoError) {
  // Integers below 256: products and sums of some of them are values of float32.
  for (auto& [name, data] : inputs) {
    for (int64_t i = 0; i < data.size(); ++i) data.Set(i, std::round(data.At(i)));
  }
  TensorData product = TensorData::Zeros(DType::kFloat32, {6, 5});
  for (int64_t i = 0; i < product.size(); ++i) {
    double sum = 0;
    for (int64_t k = 0; k < 20; ++k)
      sum += inputs.at("a").At(i / 5 * 20 + k) * inputs.at("b").At(k * 5 + i % 5);
    product.Set(i, sum);
  }
  stored["p"] = product;
  auto rest = Open(stored);
  rest->MeasureSteps(elements);
  EXPECT_EQ(rest->steps()[0].error, 0);
  EXPECT_GT(rest->steps()[1].error, 0);
}

TEST_F(ExactRests, OneStepInFloat32AndTheOthersRounded) {
  const auto rest = Open(stored);
  // Everything is rounded as it was stored: the stored values themselves come out.
  HybridOfSteps rounds{.given = std::vector<bool>(4, false), .rounds = true}, kept = rounds;
  rounds.given[0] = kept.given[0] = true;
  kept.in_float32 = 3;
  const auto values = rest->Evaluate(elements, std::vector<HybridOfSteps>{rounds, kept});
  const auto due =
      Exactly(c, inputs, {{"p", stored.at("p")}, {"s", stored.at("s")}, {"q", stored.at("q")}}, elements);
  for (size_t k = 0; k < elements.size(); ++k) {
    EXPECT_EQ(values[0][k].hi, stored.at("r").At(elements[k]));
    EXPECT_EQ(values[1][k].hi, RoundTo(due[k].value(), *FormatOf(DType::kFloat32)));
  }
}

TEST_F(ExactRests, WhatIsNoValueOfTheWayIsLeftOut) {
  std::vector<StoredStep> steps{{.name = "p", .data = stored.at("p")},
                                {.name = "r", .data = stored.at("r")},
                                {.name = "nowhere", .data = stored.at("r")}};
  const auto rest = OpenExactRest(c, inputs, {}, "q", steps);
  ASSERT_TRUE(rest);
  ASSERT_EQ((*rest)->steps().size(), 1u);
  EXPECT_EQ((*rest)->steps()[0].name, "p");
  EXPECT_FALSE(OpenExactRest(c, inputs, {}, "nowhere", steps));
}

TEST(ExactRestsThatTurn, LanesChooseForThemselves) {
  Case c;
  c.id = "test/choice";
  c.tensors = {Tensor("x", DType::kFloat32, {4})};
  c.program = {MakeStep("mul", {"x", "x"}, "y"), MakeStep("gt", {"y", "x"}, "m"),
               MakeStep("where", {"m", "x", "y"}, "r")};
  c.observe = {"y", "m", "r"};
  const TensorsByName inputs = testing::NormalInputs(c, 9);
  TensorData negative = TensorData::Zeros(DType::kFloat32, {4});
  for (int64_t i = 0; i < 4; ++i) negative.Set(i, -1);
  const auto rest = OpenExactRest(c, inputs, {}, "r", {{.name = "y", .data = negative}});
  ASSERT_TRUE(rest) << rest.error().Text();
  const std::vector<HybridOfSteps> both{{.given = {false}}, {.given = {true}}};
  const auto values = (*rest)->Evaluate(EveryElement(4), both);
  for (int64_t i = 0; i < 4; ++i) {
    const double x = inputs.at("x").At(i);
    EXPECT_EQ(values[0][static_cast<size_t>(i)].hi, std::min(x, x * x));
    EXPECT_EQ(values[1][static_cast<size_t>(i)].hi, std::min(x, -1.0));
  }
}

}  // namespace
}  // namespace ulpscope
