// The report of a classification beside its models: places, exclusions, bounds of orders, results that show no format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/judge/products.h"

namespace ulpscope {
namespace {

using testing::ClassifyProduct;
using ::testing::Contains;
using testing::Either;
using testing::ExactSum;
using ::testing::HasSubstr;
using testing::ProductsOf;
using testing::ShuffledSum;
using testing::Terms;

double SumInFloat32(const Terms& row, const Terms& column, int64_t) {
  double sum = 0;
  for (const double product : ProductsOf(row, column)) sum = RoundTo(sum + product, Binary32());
  return sum;
}

TEST(Outcome, ElementsOutsideEveryBoundAreReportedWithTheirPlace) {
  const auto found = ClassifyProduct({}, [](const Terms& row, const Terms& column, int64_t i) {
    return SumInFloat32(row, column, i) + (i / 16 == 3 ? 1 : 0);
  });
  EXPECT_FALSE(found.fits);
  EXPECT_THAT(TextsOf(found.says), Contains(HasSubstr("wrong only in row 3"))) << found.label;
}

TEST(Outcome, AnElementThatNoOrderOfABlockUnitGivesIsItsWitness) {
  const auto found = ClassifyProduct({}, SumInFloat32);
  EXPECT_TRUE(std::ranges::any_of(found.excluded, [](const Exclusion& each) {
    return each.model.acc.block > 0 &&
           each.why.find("summation orders of this unit gives it") != each.why.npos &&
           each.observed != each.reference;
  })) << found.excluded.size();
}

TEST(Outcome, ANeighbourOfTheModelsIsExcludedByAnElementOutsideItsBounds) {
  const auto found = ClassifyProduct({}, SumInFloat32);
  ASSERT_FALSE(found.models.empty());
  size_t by_bounds = 0;
  for (const Exclusion& each : found.excluded) {
    if (each.by != ExcludedBy::kBounds) continue;
    ++by_bounds;
    EXPECT_TRUE(each.observed < each.low || each.observed > each.high) << each.why;
  }
  EXPECT_GT(by_bounds, 0u);
}

TEST(Outcome, TheBoundOfAnyOrderHoldsTheErrorsOfEachOrder) {
  double largest = 0;
  const auto plain = ClassifyProduct({}, [&](const Terms& row, const Terms& column, int64_t i) {
    const double sum = SumInFloat32(row, column, i),
                 shuffled = ShuffledSum(ProductsOf(row, column), Binary32());
    for (const double one : {sum, shuffled})
      largest = std::max(largest, std::fabs(one - ExactSum(ProductsOf(row, column))));
    return sum;
  });
  EXPECT_GE(plain.any_order, largest);
  EXPECT_LT(plain.any_order, 1e4 * largest);
}

TEST(Outcome, TheShareOfBitsIsThatOfTheNearestOrder) {
  EXPECT_EQ(ClassifyProduct({}, SumInFloat32).reproduced, 1);
  const auto shuffled = ClassifyProduct({}, [](const Terms& row, const Terms& column, int64_t) {
    return ShuffledSum(ProductsOf(row, column), Binary32());
  });
  ASSERT_TRUE(shuffled.fits) << shuffled.label;
  EXPECT_GT(shuffled.reproduced, 0.05);
  EXPECT_LT(shuffled.reproduced, 0.8);
}

// All exact results are normal numbers of float32 and too small for float16: a sum in float16 gives nothing but zeros, and so
// does any other format of its range.
TEST(Outcome, ZerosThatFloat16WouldGiveNameNoFormat) {
  for (const double scale : {0x1p-14, 0x1p-20, 0x1p-40}) {
    const auto found = ClassifyProduct({.operand = [=](double x, int64_t) { return scale * x; }},
                                       [](const Terms&, const Terms&, int64_t) { return 0.0; });
    EXPECT_TRUE(found.models.empty()) << found.label;
    EXPECT_FALSE(found.fits);
    EXPECT_THAT(TextsOf(found.says), Contains(HasSubstr("no zero shows which format lost them")))
        << found.label;
  }
}

// Of a contract that does not name the output rounding a store to either neighbour is no violation.
TEST(Outcome, AnAccumulatorIsNotExcludedBehindAnOutputToEitherNeighbour) {
  ValueDemand demand;
  demand.facets["acc"] = {"at_least_float32"};
  const auto proved = [&](const ValueDemand* any_store_of) {
    return ClassifyProduct({.stored = DType::kBfloat16},
                           [](const Terms& row, const Terms& column, int64_t i) {
                             return Either(ExactSum(ProductsOf(row, column)), Bfloat16(), i);
                           },
                           {.evidence = ClassifyOptions::Evidence::kHard, .any_store_of = any_store_of});
  };
  const auto is_faithful = [](const PrecisionModel& model) {
    return model.out.faithful && model.acc.bits() >= 24;
  };
  EXPECT_FALSE(std::ranges::any_of(proved(nullptr).models_proved, is_faithful));
  EXPECT_TRUE(std::ranges::any_of(proved(&demand).models_proved, is_faithful));
}

// No order of a float32 sum of exact products gives all exact sums; these err by less than it does, sums in 23 bits by more.
TEST(Outcome, ExcludedFloat32SumsAreTheMeasureOfErrors) {
  const auto within = [](int bits) {
    const auto found = ClassifyProduct({.read = DType::kFloat32, .terms = 3},
                                       [bits](const Terms& row, const Terms& column, int64_t) {
                                         double sum = 0;
                                         for (const double product : ProductsOf(row, column))
                                           sum = RoundTo(sum + product, FormatOfBits(bits));
                                         return RoundTo(sum, Binary32());
                                       },
                                       {.evidence = ClassifyOptions::Evidence::kHard});
    EXPECT_FALSE(std::ranges::any_of(found.models_proved, [](const PrecisionModel& model) {
      return model.acc == SumsIn(Binary32()) && model.in.empty() && model.prod.none();
    })) << bits;
    return found.within;
  };
  EXPECT_GT(within(52), 0);
  EXPECT_LT(within(52), 1);
  EXPECT_GT(within(23), 1.5);
}

}  // namespace
}  // namespace ulpscope
