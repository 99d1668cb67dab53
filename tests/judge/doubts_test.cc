// Results of a wrong arithmetic that anyone can read here, and the rule that takes each for what it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "harness/judge/classify.h"
#include "harness/num/float_format.h"
#include "oracles/oracle.h"
#include "tests/judge/products.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using ::testing::Contains;
using testing::Either;
using testing::ExactSum;
using ::testing::HasSubstr;
using testing::ShuffledSum;
using testing::Terms;
using testing::UniformOf;

/// A product of two matrices, each element of which `computed` makes from its exact products.
Classification OfProduct(DType dtype, int64_t terms,
                         const std::function<double(const Terms&, int64_t)>& computed) {
  const Case c = testing::MatmulCase(DType::kBfloat16, dtype, 16, terms, 16);
  const auto inputs = testing::NormalInputs(c, 3);
  const TensorData &a = inputs.at("a"), &b = inputs.at("b");
  TensorData product = TensorData::Zeros(dtype, {16, 16});
  for (int64_t i = 0; i < product.size(); ++i) {
    Terms products;
    for (int64_t k = 0; k < terms; ++k) products.push_back(a.At(i / 16 * terms + k) * b.At(k * 16 + i % 16));
    product.Set(i, computed(products, i));
  }
  const auto oracle = OpenCaseOracle(c, inputs);
  return ClassifyValue(**oracle, "product", product);
}

TEST(Doubts, ASumThatIsRoundedTwiceIsNoNarrowSum) {
  const auto found = OfProduct(DType::kFloat16, 64, [](const Terms& terms, int64_t) {
    return RoundTo(RoundTo(ExactSum(terms), Binary16()), Bfloat16());
  });
  EXPECT_THAT(TextsOf(found.says),
              Contains(HasSubstr("as if the sum were rounded to float16 and then to bfloat16")))
      << found.label;
  EXPECT_EQ(found.decided_by, "rounded-twice");
}

TEST(Doubts, NarrowSumsInAnOrderOfTheirOwnAreNotNamedByTheSizeOfErrors) {
  const auto found = OfProduct(DType::kFloat32, 64, [](const Terms& terms, int64_t) {
    return ShuffledSum(terms, Binary16(), Rounding::kNearestEven);
  });
  EXPECT_TRUE(found.models.empty()) << found.label;
  EXPECT_FALSE(found.fits);
}

TEST(Doubts, TruncatingSumsInAnOrderOfTheirOwnAreSeenByTheirBias) {
  const auto found = OfProduct(DType::kFloat32, 64, [](const Terms& terms, int64_t) {
    return ShuffledSum(terms, Binary32(), Rounding::kTowardZero);
  });
  EXPECT_THAT(TextsOf(found.says), Contains(HasSubstr("errors biased as those of"))) << found.label;
}

TEST(Doubts, AnOutputToEitherNeighbourStandsBesideSums) {
  const auto found = OfProduct(DType::kBfloat16, 64, [](const Terms& terms, int64_t i) {
    return Either(ExactSum(terms), Bfloat16(), i);
  });
  EXPECT_TRUE(
      std::ranges::any_of(found.models, [](const PrecisionModel& model) { return model.out.faithful; }) ||
      std::ranges::any_of(found.says,
                          [](const Remark& remark) { return remark.kind == RemarkKind::kNeighbours; }))
      << found.label;
}

TEST(Doubts, InfinitiesAloneNameNoFormat) {
  const auto found = OfProduct(
      DType::kFloat32, 64, [](const Terms& terms, int64_t) { return std::copysign(kInf, ExactSum(terms)); });
  EXPECT_THAT(TextsOf(found.says), Contains(HasSubstr("no result is a number other than zero")))
      << found.label;
}

TEST(Doubts, ZerosAloneNameNoFormat) {
  const auto found = OfProduct(DType::kFloat32, 64, [](const Terms&, int64_t) { return 0.0; });
  EXPECT_TRUE(found.models.empty()) << found.label;
}

TEST(Doubts, AFactorThatAllResultsShareIsNamed) {
  const auto found = OfProduct(DType::kFloat32, 64, [](const Terms& terms, int64_t) {
    return RoundTo(1.0009765625 * ExactSum(terms), Binary32());
  });
  EXPECT_THAT(TextsOf(found.says), Contains(HasSubstr("1.00098 times the exact value"))) << found.label;
}

TEST(Doubts, RoundedToFourteenBitsIsNoSum) {
  const auto found = OfProduct(DType::kFloat32, 64, [](const Terms& terms, int64_t) {
    return RoundTo(ExactSum(terms), FormatOfBits(14));
  });
  EXPECT_TRUE(std::ranges::all_of(found.models, [](const PrecisionModel& model) {
    return model.mid.bits() == 14;
  })) << found.label;
}

TEST(Doubts, AnOutputToEitherNeighbourErrsLessThanSums) {
  const auto found = OfProduct(DType::kFloat32, 6, [](const Terms& terms, int64_t i) {
    return Either(ExactSum(terms), Binary32(), i);
  });
  EXPECT_THAT(TextsOf(found.says), Contains(HasSubstr("nearer than any order tried of a float32 sum comes")))
      << found.label;
}

/// A function of 512 numbers, one by one.
Classification OfFunction(const std::string& op, const std::function<double(double)>& computed) {
  Case c;
  c.id = op;
  c.tensors = {testing::Tensor("x", DType::kFloat32, {512})};
  c.program = {testing::MakeStep(op, {"x"}, "y")};
  c.observe = {"y"};
  const auto inputs = testing::NormalInputs(c, 3);
  TensorData y = TensorData::Zeros(DType::kFloat32, {512});
  for (int64_t i = 0; i < y.size(); ++i) y.Set(i, RoundTo(computed(inputs.at("x").At(i)), Binary32()));
  const auto oracle = OpenCaseOracle(c, inputs);
  return ClassifyValue(**oracle, "y", y);
}

TEST(Doubts, AnOperandInTwelveBitsIsNamed) {
  const auto found = OfFunction("exp", [](double x) { return std::exp(RoundTo(x, FormatOfBits(12))); });
  EXPECT_THAT(TextsOf(found.says), Contains("as if x were rounded to 12 significant bits where it is read"))
      << found.label;
}

TEST(Doubts, AStepInTwelveBitsIsNamed) {
  const auto found =
      OfFunction("silu", [](double x) { return x * RoundTo(1 / (1 + std::exp(-x)), FormatOfBits(12)); });
  EXPECT_THAT(TextsOf(found.says), Contains(HasSubstr("inside were rounded to 12 significant bits (")))
      << found.label;
}

TEST(Doubts, AStepInTwelveBitsIsNamedWhereOtherLastBitsHideItsOwn) {
  const auto found = OfFunction("silu", [](double x) {
    const double sigmoid = RoundTo(1 / (1 + std::exp(-x)), FormatOfBits(12));
    return x * sigmoid * (1 + (UniformOf(std::llround(x * 0x1p30)) - 0.5) * 0x1p-21);
  });
  EXPECT_THAT(TextsOf(found.says), Contains(HasSubstr("inside were rounded to 12 significant bits")))
      << found.label;
}

}  // namespace
}  // namespace ulpscope
