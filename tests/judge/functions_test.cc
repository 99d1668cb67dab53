// Functions in float32 that are off by more than its rounding: a constant of few digits, an approximation, and honest ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "harness/judge/classify.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using ::testing::HasSubstr;
using Erf = std::function<double(double)>;

/// gelu of normal numbers, each step stored in float32; the argument of erf is x times `factor`.
Classification JudgeGelu(double scale, float factor, const Erf& erf) {
  Case c;
  c.id = "gelu";
  c.tensors.push_back(testing::Tensor("x", DType::kFloat32, {1600}));
  c.program = {testing::MakeStep("gelu", {"x"}, "y", {})};
  c.observe = {"y"};
  auto inputs = testing::NormalInputs(c, 3);
  TensorData& x = inputs.at("x");
  TensorData y = TensorData::Zeros(DType::kFloat32, x.shape);
  for (int64_t i = 0; i < x.size(); ++i) {
    const auto each = static_cast<float>(scale * x.At(i));
    x.Set(i, each);
    const float tail = 1.0F + static_cast<float>(erf(each * factor));
    y.Set(i, 0.5F * each * tail);
  }
  const auto oracle = OpenCaseOracle(c, inputs);
  EXPECT_TRUE(oracle);
  return ClassifyValue(**oracle, "y", y);
}

constexpr auto kRoot = static_cast<float>(1 / std::numbers::sqrt2);
double Precise(double x) { return std::erf(x); }

/// Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: off by up to 1.5e-7.
double Short(double x) {
  const double t = 1 / (1 + 0.3275911 * std::fabs(x));
  const double sum =
      t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return std::copysign(1 - sum * std::exp(-x * x), x);
}

TEST(FunctionsInFloat32, HonestStepsAreFloat32AndNoMore) {
  const Classification found = JudgeGelu(1, kRoot, Precise);
  EXPECT_TRUE(found.fits) << found.label;
  EXPECT_EQ(found.beyond, 0) << found.label;
  EXPECT_EQ(found.label, "each step in float32, stored float32");
}

// Errors of four units, where gelu may be off by 64: the constant is off by 1.07e-4 of itself, which is read off the results.
TEST(FunctionsInFloat32, AConstantOfEightBitsIsReadOffTheResults) {
  const float in_bfloat16 = 0.70703125F;
  ASSERT_NEAR(1 - in_bfloat16 * std::numbers::sqrt2, 1.07e-4, 1e-6);
  for (const double scale : {1.0, 0.001}) {
    const Classification found = JudgeGelu(scale, in_bfloat16, Precise);
    EXPECT_FALSE(found.fits) << found.label;
    EXPECT_THAT(found.label, HasSubstr("as if 1/sqrt(2) inside were too small by 1.")) << scale;
    EXPECT_THAT(found.label, HasSubstr("e-04 of itself in every element")) << scale;
  }
}

// Within what gelu may be off, and no function of a library: a step in its argument that no constant is.
TEST(FunctionsInFloat32, ErrorsOfNoFunctionAreNotConfirmed) {
  const Classification found =
      JudgeGelu(0.001, kRoot, [](double x) { return std::erf(x) + 1e-6 * std::sin(1e6 * x); });
  EXPECT_FALSE(found.fits) << found.label;
  EXPECT_THAT(
      found.label,
      HasSubstr("times those of its steps in float32 (rms), and no step in fewer bits explains them"));
}

TEST(FunctionsInFloat32, AnApproximationIsToldByHowMuchItErrs) {
  const Classification found = JudgeGelu(1, kRoot, Short);
  EXPECT_TRUE(found.fits) << found.label;
  EXPECT_TRUE(found.rests_on_likelihood);
  EXPECT_GT(found.beyond, 2);
  EXPECT_LT(found.beyond, 8);
  EXPECT_THAT(found.label, HasSubstr("times those of its steps in float32"));
}

}  // namespace
}  // namespace ulpscope
