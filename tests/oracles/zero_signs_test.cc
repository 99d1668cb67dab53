// The signs of zeros: IEEE 754 as the processor has it, beside the exact reference and the emulator.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "harness/judge/classify.h"
#include "harness/num/error_free.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

constexpr double kValues[] = {-0.0, 0.0, -3.0, 3.0};

TEST(ZeroSigns, PairsHaveThoseOfTheProcessor) {
  for (const double x : kValues) {
    for (const double y : kValues) {
      const TwoDoubles a{.hi = x, .lo = 0}, b{.hi = y, .lo = 0};
      const auto same = [&](TwoDoubles pair, double plain, const char* what) {
        if (plain != 0) return;
        EXPECT_EQ(pair.hi, 0) << x << what << y;
        EXPECT_EQ(std::signbit(pair.hi), std::signbit(plain)) << x << what << y;
      };
      same(Add(a, b), x + y, " + ");
      same(Add(a, Negate(b)), x - y, " - ");
      same(Multiply(a, b), x * y, " * ");
      if (y != 0) same(Divide(a, b), x / y, " / ");
    }
    if (x == 0) {
      EXPECT_EQ(std::signbit(SquareRoot({.hi = x, .lo = 0}).hi), std::signbit(std::sqrt(x)));
    }
  }
}

struct Step {
  const char* op;
  std::function<double(double, double)> plain;
};

TEST(ZeroSigns, AWrongSignIsCountedAndARightOneIsNot) {
  const std::vector<Step> steps{{"add", [](double x, double y) { return x + y; }},
                                {"sub", [](double x, double y) { return x - y; }},
                                {"mul", [](double x, double y) { return x * y; }}};
  for (const Step& step : steps) {
    Case c;
    c.id = step.op;
    c.tensors = {testing::Tensor("x", DType::kFloat32, {16}), testing::Tensor("y", DType::kFloat32, {16})};
    c.program = {testing::MakeStep(step.op, {"x", "y"}, "s")};
    c.observe = {"s"};
    std::map<std::string, TensorData> inputs{{"x", TensorData::Zeros(DType::kFloat32, {16})},
                                             {"y", TensorData::Zeros(DType::kFloat32, {16})}};
    TensorData right = TensorData::Zeros(DType::kFloat32, {16}), wrong = right;
    int64_t zeros = 0;
    for (int64_t i = 0; i < 16; ++i) {
      const double x = kValues[i / 4], y = kValues[i % 4], s = step.plain(x, y);
      inputs.at("x").Set(i, x);
      inputs.at("y").Set(i, y);
      right.Set(i, s);
      wrong.Set(i, s == 0 ? -s : s);
      zeros += s == 0 ? 1 : 0;
    }
    ASSERT_GT(zeros, 0);
    const auto oracle = OpenCaseOracle(c, inputs);
    ASSERT_TRUE(oracle);
    EXPECT_EQ(ClassifyValue(**oracle, "s", right).wrong_zeros, 0) << step.op;
    const Classification found = ClassifyValue(**oracle, "s", wrong);
    EXPECT_EQ(found.wrong_zeros, zeros) << step.op;
    EXPECT_EQ(found.max_abs, 0) << "the numbers are right";
    ASSERT_FALSE(found.notes.empty());
    EXPECT_NE(found.notes.back().text.find("where IEEE 754 gives"), std::string::npos)
        << found.notes.back().text;
  }
}

/// A sum of nothing but -0 is +0 where it begins with +0, as those of NumPy, PyTorch and JAX do, and -0 where it begins with a term.
TEST(ZeroSigns, OfASumOfMinusZerosEitherIsRight) {
  Case c;
  c.id = "sum";
  c.tensors = {testing::Tensor("x", DType::kFloat32, {2, 2})};
  c.program = {testing::MakeStep("sum", {"x"}, "s", {{"dim", testing::Integers({1})}})};
  c.observe = {"s"};
  std::map<std::string, TensorData> inputs{{"x", TensorData::Zeros(DType::kFloat32, {2, 2})}};
  inputs.at("x").Set(0, -0.0);
  inputs.at("x").Set(1, -0.0);
  inputs.at("x").Set(2, 3);
  inputs.at("x").Set(3, -3);
  const auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle);
  const std::vector<int64_t> both{0, 1};
  EXPECT_EQ((*oracle)->ZeroSigns("s", both), (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace ulpscope
