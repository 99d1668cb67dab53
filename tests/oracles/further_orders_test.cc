// Sums of sorted terms and other forms of a mean, held against numbers worked out by hand.
#include "oracles/dot/further_orders.h"

#include <gtest/gtest.h>

#include <vector>

namespace ulpscope {
namespace {

std::vector<SumTerm> Terms(const std::vector<double>& values) {
  std::vector<SumTerm> terms;
  for (const double value : values) {
    terms.push_back(TermOf(value, 1));
    terms.back().value = {.hi = value, .lo = 0};
  }
  return terms;
}

const FurtherOrder& OfKind(FurtherOrder::Kind kind) {
  for (const FurtherOrder& order : FurtherOrders(true)) {
    if (order.kind == kind) return order;
  }
  ADD_FAILURE() << "no such order";
  return FurtherOrders(true).front();
}

TEST(FurtherOrders, EachSumGoesItsOwnWay) {
  using Kind = FurtherOrder::Kind;
  // Beside 2^24 one is half a unit of float32, and beside its negative a whole one.
  const auto terms = Terms({1, 0x1p24, 1, -0x1p24, 1});
  EXPECT_EQ(SumFurther(OfKind(Kind::kAscending), terms), 3) << "-2^24 + 1 + 1 + 1 + 2^24";
  EXPECT_EQ(SumFurther(OfKind(Kind::kDescending), terms), 0) << "2^24 + 1 stays 2^24, three times";
  EXPECT_EQ(SumFurther(OfKind(Kind::kSmallestFirst), terms), 4) << "3 + 2^24 is a tie, to even";
  EXPECT_EQ(SumFurther(OfKind(Kind::kLargestFirst), terms), 3);
  EXPECT_EQ(SumFurther(OfKind(Kind::kSignsApart), terms), 0) << "1 + 2^24 + 1 + 1 are ties, less 2^24";
}

TEST(FurtherOrders, AMeanHasOtherForms) {
  using Kind = FurtherOrder::Kind;
  const std::vector<double> terms{1, 2, 4};
  const double third = static_cast<double>(1.0F / 3.0F);
  EXPECT_EQ(MeanFurther(OfKind(Kind::kTimesReciprocal), terms), 7 * third)
      << "not rounded: the store does it";
  const double apart = static_cast<double>(2.5F / 3.0F);
  EXPECT_EQ(MeanFurther(OfKind(Kind::kRunning), terms),
            static_cast<double>(1.5F + static_cast<float>(apart)));
  const double scaled = static_cast<double>(static_cast<float>(third) + static_cast<float>(2 * third));
  EXPECT_EQ(MeanFurther(OfKind(Kind::kTermsScaled), terms),
            static_cast<double>(static_cast<float>(scaled) + static_cast<float>(4 * third)));
}

TEST(FurtherOrders, SumsAloneHaveNoFormsOfAMean) {
  EXPECT_EQ(FurtherOrders(false).size(), 5u);
  EXPECT_GT(FurtherOrders(true).size(), FurtherOrders(false).size());
}

}  // namespace
}  // namespace ulpscope
