// How many results a sentence takes, and how large an error: results just above and just below each number of
// harness/judge/rule_numbers.h that is tested here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "tests/judge/products.h"

namespace ulpscope {
namespace {

using testing::ClassifyProduct;
using testing::ExactSum;
using testing::ProductsOf;
using testing::ShuffledSum;
using testing::Terms;
using testing::UniformOf;

bool States(const Classification& found, const std::string& what) {
  return std::ranges::any_of(
      found.says, [&](const Remark& remark) { return remark.text.find(what) != remark.text.npos; });
}

/// A product of `rows` times `columns` results, each made of its exact products.
Classification OfResults(int64_t rows, int64_t columns, const std::function<double(const Terms&)>& computed,
                         DType stored = DType::kFloat32) {
  return ClassifyProduct(
      {.stored = stored, .rows = rows, .columns = columns},
      [&](const Terms& row, const Terms& column, int64_t) { return computed(ProductsOf(row, column)); });
}

TEST(Limits, EightInfinitiesShowThatNoFormatShows) {
  const auto infinite = [](const Terms& terms) { return std::copysign(kInf, ExactSum(terms)); };
  const char* sentence = "no result is a number other than zero";
  EXPECT_TRUE(States(OfResults(3, 4, infinite), sentence));
  EXPECT_FALSE(States(OfResults(2, 3, infinite), sentence));
}

TEST(Limits, ThirtyTwoResultsShowASumThatIsRoundedTwice) {
  const auto twice = [](const Terms& terms) {
    return RoundTo(RoundTo(ExactSum(terms), Binary16()), Bfloat16());
  };
  const char* sentence = "as if the sum were rounded to float16 and then to bfloat16";
  EXPECT_TRUE(States(OfResults(6, 6, twice, DType::kFloat16), sentence));
  EXPECT_FALSE(States(OfResults(5, 5, twice, DType::kFloat16), sentence));
}

TEST(Limits, APlaceOfEightElementsIsClassifiedByItself) {
  const auto of = [](int64_t columns) {
    return ClassifyProduct({.columns = columns}, [columns](const Terms& row, const Terms& column, int64_t i) {
      return RoundTo(ExactSum(ProductsOf(row, column)), Binary32()) + (i / columns == 3 ? 1 : 0);
    });
  };
  EXPECT_EQ(of(12).regions.size(), 2u);
  EXPECT_TRUE(of(6).regions.empty());
}

// 4 standard deviations of the signs of 64 errors are 32; all of these errors have one sign.
TEST(Limits, SixtyFourErrorsOfOneSignAreNoChance) {
  const auto cut = [](const Terms& terms) { return ShuffledSum(terms, Binary32(), Rounding::kTowardZero); };
  EXPECT_TRUE(States(OfResults(8, 8, cut), "errors biased as those of"));
}

TEST(Limits, FortyEightMissingBitsAreNoAccident) {
  const auto in_bits = [](const Terms& terms) { return RoundTo(ExactSum(terms), FormatOfBits(14)); };
  EXPECT_TRUE(States(OfResults(1, 7, in_bits), "at most 14 significant bits"));
  EXPECT_FALSE(States(OfResults(1, 4, in_bits), "at most 14 significant bits"));
}

// Half of all float32 sums have a last bit.
TEST(Limits, FortyMissingLastBitsAreNoChance) {
  const auto in_bits = [](const Terms& terms) { return RoundTo(ExactSum(terms), FormatOfBits(23)); };
  EXPECT_TRUE(States(OfResults(9, 9, in_bits), "at most 23 significant bits"));
  EXPECT_FALSE(States(OfResults(5, 5, in_bits), "at most 23 significant bits"));
}

TEST(Limits, ProductsInTwentyOneBitsStandBesideAFloat32Sum) {
  const auto found =
      ClassifyProduct({.read = DType::kFloat32}, [](const Terms& row, const Terms& column, int64_t) {
        return ShuffledSum(
            ProductsOf(row, column, [](double product) { return RoundTo(product, FormatOfBits(21)); }),
            Binary32());
      });
  EXPECT_TRUE(std::ranges::any_of(found.models, [](const PrecisionModel& model) {
    return model.prod == ToBits(21);
  })) << found.label;
}

TEST(Limits, AHundredNearestResultsExcludeNarrowSums) {
  const auto proved = [](int64_t n) {
    const auto found =
        ClassifyProduct({.read = DType::kFloat16, .stored = DType::kFloat16, .rows = n, .columns = n},
                        [](const Terms& row, const Terms& column, int64_t) {
                          return RoundTo(ExactSum(ProductsOf(row, column)), Binary16());
                        },
                        {.evidence = ClassifyOptions::Evidence::kHard, .ordinary = true});
    return std::ranges::any_of(found.models_proved,
                               [](const PrecisionModel& model) { return model.acc == SumsIn(Binary16()); });
  };
  EXPECT_TRUE(proved(9));
  EXPECT_FALSE(proved(10));
}

// A zero is due to no output rounding where the exact result is 2^8 times the smallest normal number or more.
TEST(Limits, ZerosFarInsideTheRangeAreCounted) {
  int64_t far = 0;
  const auto found = ClassifyProduct({.operand = [](double x, int64_t) { return std::ldexp(x, -60); }},
                                     [&far](const Terms& row, const Terms& column, int64_t i) {
                                       const double sum = ExactSum(ProductsOf(row, column));
                                       if (i % 2 == 1) return RoundTo(sum, Binary32());
                                       far += std::fabs(sum) >= 0x1p-118 ? 1 : 0;
                                       return 0.0;
                                     });
  EXPECT_GT(far, 32);
  EXPECT_LT(far, 96);
  EXPECT_TRUE(States(found, std::to_string(far) + " of 256 results are zero where the exact ones are not"))
      << found.label;
}

/// A float32 sum in an order of its own, and noise of so many units of 2^-21 besides.
Classification WithNoise(double units, int64_t rows) {
  return ClassifyProduct({.read = DType::kFloat32, .rows = rows, .columns = 4},
                         [units](const Terms& row, const Terms& column, int64_t i) {
                           const double sum = ShuffledSum(ProductsOf(row, column), Binary32());
                           return RoundTo(sum + (UniformOf(i) - 0.5) * units * 0x1p-21, Binary32());
                         });
}

TEST(Limits, ErrorsOfTwiceFloat32sAreStatedOfSixteenResults) {
  EXPECT_GT(WithNoise(8, 5).beyond, 2);
  EXPECT_EQ(WithNoise(8, 3).beyond, 0);
  EXPECT_EQ(WithNoise(0, 16).beyond, 0);
}

// The root mean square of 64 errors of a float32 sum in any order is at most 2 + 6/8 times that of the worst one.
TEST(Limits, ErrorsFarBeyondTheWorstOrderAreNoFloat32Sums) {
  EXPECT_TRUE(WithNoise(8, 16).fits);
  EXPECT_FALSE(WithNoise(16, 16).fits);
}

/// A function of numbers, one by one.
Classification OfNumbers(const std::string& op, int64_t count,
                         const std::function<double(double, int64_t)>& computed) {
  Case c;
  c.id = op;
  c.tensors = {testing::Tensor("x", DType::kFloat32, {count})};
  c.program = {testing::MakeStep(op, {"x"}, "y")};
  c.observe = {"y"};
  const auto inputs = testing::NormalInputs(c, 3);
  TensorData y = TensorData::Zeros(DType::kFloat32, {count});
  for (int64_t i = 0; i < count; ++i) y.Set(i, RoundTo(computed(inputs.at("x").At(i), i), Binary32()));
  const auto oracle = OpenCaseOracle(c, inputs);
  return ClassifyValue(**oracle, "y", y);
}

TEST(Limits, TwentyFourResultsShowAnOperandInTwelveBits) {
  const auto read = [](double x, int64_t) { return std::exp(RoundTo(x, FormatOfBits(12))); };
  EXPECT_TRUE(States(OfNumbers("exp", 36, read), "12 significant bits"));
  EXPECT_FALSE(States(OfNumbers("exp", 18, read), "12 significant bits"));
}

}  // namespace
}  // namespace ulpscope
