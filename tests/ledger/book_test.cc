// Ledgers from numbers that are written out.
#include "harness/ledger/book.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace ulpscope {
namespace {

TensorData Of(const std::vector<double>& elements, DType dtype = DType::kFloat32) {
  TensorData tensor = TensorData::Zeros(dtype, {static_cast<int64_t>(elements.size())});
  for (size_t i = 0; i < elements.size(); ++i) tensor.Set(static_cast<int64_t>(i), elements[i]);
  return tensor;
}

const std::vector<std::string> kOrder{"p", "q", "r"};

TEST(Book, SharesAreThoseOfTheSquaredDifferenceAndAddUpToOne) {
  // The difference is (3, 4): p gives (3, 0), r gives (0, 4).
  const LedgerWalk a{.end = Of({0, 0})};
  const LedgerWalk b{.hybrids = {{.step = "p", .value = Of({3, 0})}, {.step = "r", .value = Of({3, 4})}},
                     .end = Of({3, 4})};
  const Ledger ledger = Book(Of({0, 0}), a, b, kOrder);
  ASSERT_EQ(ledger.entries.size(), 2u);
  EXPECT_EQ(ledger.entries[0].step, "p");
  EXPECT_DOUBLE_EQ(ledger.entries[0].share, 9.0 / 25);
  EXPECT_EQ(ledger.entries[0].moved, 1);
  EXPECT_DOUBLE_EQ(ledger.entries[0].rms, 3 / std::sqrt(2.0));
  EXPECT_EQ(ledger.entries[1].step, "r");
  EXPECT_DOUBLE_EQ(ledger.entries[1].share, 16.0 / 25);
  EXPECT_DOUBLE_EQ(ledger.entries[1].largest, 4);
  EXPECT_EQ(ledger.differing, 2);
  EXPECT_FALSE(ledger.counted);
  EXPECT_DOUBLE_EQ(ledger.rms, std::sqrt(12.5));
}

TEST(Book, WhatWorksAgainstTheRestIsNegative) {
  const LedgerWalk b{.hybrids = {{.step = "p", .value = Of({3})}, {.step = "q", .value = Of({2})}},
                     .end = Of({2})};
  const Ledger ledger = Book(Of({0}), {.end = Of({0})}, b, kOrder);
  ASSERT_EQ(ledger.entries.size(), 2u);
  EXPECT_DOUBLE_EQ(ledger.entries[0].share, 1.5);
  EXPECT_DOUBLE_EQ(ledger.entries[1].share, -0.5);
}

TEST(Book, BothSidesOnACarrierThatIsNeither) {
  // Both leave the carrier in p by the same amount, and only one of them does in q.
  const LedgerWalk a{.hybrids = {{.step = "p", .value = Of({5})}}, .end = Of({5})};
  const LedgerWalk b{.hybrids = {{.step = "p", .value = Of({5})}, {.step = "q", .value = Of({7})}},
                     .end = Of({7})};
  const Ledger ledger = Book(Of({1}), a, b, kOrder);
  ASSERT_EQ(ledger.entries.size(), 1u) << "what both do alike is no entry";
  EXPECT_EQ(ledger.entries[0].step, "q");
  EXPECT_DOUBLE_EQ(ledger.entries[0].share, 1);
}

TEST(Book, WhatNoStepAccountsForComesLast) {
  const LedgerWalk b{.hybrids = {{.step = "q", .value = Of({3, 0})}}, .end = Of({3, 4})};
  const Ledger ledger = Book(Of({0, 0}), {.end = Of({0, 0})}, b, kOrder);
  ASSERT_EQ(ledger.entries.size(), 2u);
  EXPECT_EQ(ledger.entries[1].step, "");
  EXPECT_DOUBLE_EQ(ledger.entries[1].share, 16.0 / 25);
}

TEST(Book, WhereSomethingIsInfiniteElementsAreCounted) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  // p makes one element infinite, q another one NaN and a third one 2; the fourth is moved by p and moved back by q.
  const LedgerWalk b{
      .hybrids = {{.step = "p", .value = Of({inf, 0, 0, 1})}, {.step = "q", .value = Of({inf, nan, 2, 0})}},
      .end = Of({inf, nan, 2, 0})};
  const Ledger ledger = Book(Of({0, 0, 0, 0}), {.end = Of({0, 0, 0, 0})}, b, kOrder);
  EXPECT_TRUE(ledger.counted);
  EXPECT_EQ(ledger.differing, 3);
  ASSERT_EQ(ledger.entries.size(), 2u);
  EXPECT_EQ(ledger.entries[0].moved, 2);
  EXPECT_DOUBLE_EQ(ledger.entries[0].share, 2.0 / 3);
  EXPECT_EQ(ledger.entries[1].moved, 3);
  EXPECT_DOUBLE_EQ(ledger.entries[1].share, 1.0 / 3);
}

TEST(Book, WhereBothSidesBecomeInfiniteAlikeNothingIsBooked) {
  const double inf = std::numeric_limits<double>::infinity();
  const LedgerWalk a{.hybrids = {{.step = "p", .value = Of({inf, 0})}}, .end = Of({inf, 0})};
  const LedgerWalk b{.hybrids = {{.step = "p", .value = Of({inf, 0})}, {.step = "q", .value = Of({inf, 1})}},
                     .end = Of({inf, 1})};
  const Ledger ledger = Book(Of({0, 0}), a, b, kOrder);
  ASSERT_EQ(ledger.entries.size(), 1u);
  EXPECT_EQ(ledger.entries[0].step, "q");
  EXPECT_DOUBLE_EQ(ledger.entries[0].share, 1);
}

TEST(Book, IntegersAreCounted) {
  const LedgerWalk b{.hybrids = {{.step = "p", .value = Of({1, 200}, DType::kInt64)}},
                     .end = Of({1, 200}, DType::kInt64)};
  const Ledger ledger = Book(Of({0, 0}, DType::kInt64), {.end = Of({0, 0}, DType::kInt64)}, b, kOrder);
  EXPECT_TRUE(ledger.counted);
  ASSERT_EQ(ledger.entries.size(), 1u);
  EXPECT_DOUBLE_EQ(ledger.entries[0].share, 1);
}

TEST(Book, DifferencesThatNoDoubleHoldsAreExact) {
  // 1 - 2^-80 and 1 - 2^-81 round to the same double: their difference is an entry all the same.
  const DType wide = DType::kFloat64;
  const LedgerWalk a{.hybrids = {{.step = "p", .value = Of({0x1p-80}, wide)}}, .end = Of({0x1p-81}, wide)};
  const LedgerWalk b{.end = Of({1}, wide)};
  const Ledger ledger = Book(Of({1}, wide), a, b, kOrder);
  ASSERT_EQ(ledger.entries.size(), 2u);
  EXPECT_EQ(ledger.entries[0].moved, 1);
  EXPECT_EQ(ledger.entries[1].moved, 1);
  EXPECT_DOUBLE_EQ(ledger.entries[1].largest, 0x1p-81);
}

TEST(Ledger, IsExplainedWhereEachSideThatMovesHasACause) {
  const LedgerCause known{
      .backend = "x", .kind = DivergenceKind::kPrecision, .is_explained = true, .sentence = "s"},
      order{.backend = "x", .kind = DivergenceKind::kOrder, .is_explained = true, .sentence = "o"},
      open{.backend = "y", .kind = DivergenceKind::kValue, .is_explained = false, .sentence = "t"};
  Ledger ledger;
  ledger.entries = {{.step = "p", .share = 0.5, .causes = {known}},
                    {.step = "q", .share = 0.25, .causes = {known, open}},
                    {.step = "r", .share = 0.125, .causes = {order}},
                    {.step = "", .share = 0.125}};
  EXPECT_DOUBLE_EQ(ledger.Explained(), 0.625);
  EXPECT_DOUBLE_EQ(ledger.OrderOnly(), 0.125);
  ledger.entries[3].share = -0.125;
  EXPECT_DOUBLE_EQ(ledger.Unexplained(), 0.375) << "what works against the rest is not explained either";
  EXPECT_DOUBLE_EQ(ledger.Explained(), 0.625) << "nor does it make the rest more than all of it";
}

TEST(Ledger, SharesThatAreExplainedAreNoMoreThanAllAndNoLessThanNone) {
  const LedgerCause order{
      .backend = "x", .kind = DivergenceKind::kOrder, .is_explained = true, .sentence = "o"};
  Ledger ledger;
  EXPECT_EQ(ledger.Explained(), 0) << "nothing is booked";
  ledger.entries = {{.step = "p", .share = 21, .causes = {order}}, {.step = "q", .share = -20}};
  EXPECT_EQ(ledger.Explained(), 0) << "they cancel, and of one nothing is known";
  EXPECT_EQ(ledger.OrderOnly(), 0);
  ledger.entries[1].causes = {order};
  EXPECT_EQ(ledger.Explained(), 1);
  EXPECT_EQ(ledger.OrderOnly(), 1);
}

}  // namespace
}  // namespace ulpscope
