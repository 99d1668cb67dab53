// Budgets from numbers that are written out.
#include "harness/ledger/budget.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "harness/num/error_free.h"

namespace ulpscope {
namespace {

std::vector<TwoDoubles> Pairs(const std::vector<double>& values) {
  std::vector<TwoDoubles> pairs;
  for (const double each : values) pairs.push_back({.hi = each, .lo = 0});
  return pairs;
}

TEST(BookErrors, SharesAreThoseOfTheSquaredErrorAndAddUpToOne) {
  // The error is (3, 4): p gives (3, 1), q nothing, r (0, 3).
  const ErrorBudget budget = BookErrors({.exact = Pairs({1, 1}),
                                         .hybrids = {{.step = "p", .values = Pairs({4, 2})},
                                                     {.step = "q", .values = Pairs({4, 2})},
                                                     {.step = "r", .values = Pairs({4, 5})}},
                                         .end = {4, 5}},
                                        0);
  ASSERT_EQ(budget.entries.size(), 2u) << "a step without error has no entry";
  EXPECT_EQ(budget.entries[0].step, "p");
  EXPECT_DOUBLE_EQ(budget.entries[0].share, 13.0 / 25);
  EXPECT_EQ(budget.entries[0].moved, 2);
  EXPECT_DOUBLE_EQ(budget.entries[0].rms, std::sqrt(5.0));
  EXPECT_EQ(budget.entries[1].step, "r");
  EXPECT_DOUBLE_EQ(budget.entries[1].share, 12.0 / 25);
  EXPECT_EQ(budget.entries[1].moved, 1);
  EXPECT_DOUBLE_EQ(budget.rms, std::sqrt(12.5));
  EXPECT_EQ(budget.elements, 2);
}

TEST(BookErrors, WhatNoHybridAccountsForComesLast) {
  const ErrorBudget budget =
      BookErrors({.exact = Pairs({0}), .hybrids = {{.step = "p", .values = Pairs({3})}}, .end = {2}}, 0);
  ASSERT_EQ(budget.entries.size(), 2u);
  EXPECT_DOUBLE_EQ(budget.entries[0].share, 1.5);
  EXPECT_EQ(budget.entries[1].step, "");
  EXPECT_DOUBLE_EQ(budget.entries[1].share, -0.5);
}

TEST(BookErrors, ErrorsFarBelowADoubleOfTheValueAreExact) {
  // 1 + 2^-70 is exact; the result errs by -2^-70, of which p makes 2^-80.
  const std::vector<TwoDoubles> exact{{.hi = 1, .lo = 0x1p-70}}, p{{.hi = 1, .lo = 0x1p-70 + 0x1p-80}};
  const ErrorBudget budget =
      BookErrors({.exact = exact, .hybrids = {{.step = "p", .values = p}}, .end = {1}}, 0);
  ASSERT_EQ(budget.entries.size(), 2u);
  EXPECT_EQ(budget.entries[0].rms, 0x1p-80);
  EXPECT_EQ(budget.entries[1].rms, 0x1p-70 + 0x1p-80);
  EXPECT_EQ(budget.rms, 0x1p-70);
  EXPECT_EQ(budget.entries[0].share, -0x1p-10);
  EXPECT_EQ(budget.entries[1].share, 1 + 0x1p-10);
}

TEST(BookErrors, WhatIsBelowThePrecisionIsPartOfTheNextEntry) {
  const ErrorBudget budget = BookErrors(
      {.exact = Pairs({1}),
       .hybrids = {{.step = "p", .values = {{.hi = 1, .lo = 0x1p-90}}}, {.step = "q", .values = Pairs({3})}},
       .end = {3}},
      0x1p-80);
  ASSERT_EQ(budget.entries.size(), 1u);
  EXPECT_EQ(budget.entries[0].step, "q");
  EXPECT_EQ(budget.entries[0].share, 1);
  EXPECT_EQ(budget.precision, 0x1p-80);
}

TEST(Minus, IsExactWhereHighPartsCancel) {
  const TwoDoubles a{.hi = 1, .lo = 0x1p-60}, b{.hi = 1, .lo = 0x1p-100};
  const TwoDoubles difference = Minus(a, b);
  EXPECT_EQ(difference.hi, 0x1p-60 - 0x1p-100);
  EXPECT_EQ(difference.lo, 0);
}

}  // namespace
}  // namespace ulpscope
