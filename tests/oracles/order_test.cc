// Ops that order elements: the reference of a value is an element of its row, that of its number every place
// that the element may have.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "harness/num/float_format.h"
#include "oracles/choices.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using testing::MakeStep;
using testing::Tensor;

constexpr int64_t kOrderRows = 40, kOrderColumns = 7;
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN(),
                 kInf = std::numeric_limits<double>::infinity();

/// Lines with ties, some with infinities.
std::map<std::string, TensorData> OrderInputs() {
  TensorData x = TensorData::Zeros(DType::kFloat32, {kOrderRows, kOrderColumns});
  for (int64_t i = 0; i < x.size(); ++i) x.Set(i, static_cast<double>((i * 37 + i / 5) % 9) - 4);
  x.Set(3, kInf);
  x.Set(12, -kInf);
  x.Set(13, -kInf);
  return {{"x", std::move(x)}};
}

/// The columns of a row, ordered; ties by the column.
std::vector<int64_t> Ordered(const TensorData& x, int64_t row, bool descending) {
  std::vector<int64_t> columns(kOrderColumns);
  std::iota(columns.begin(), columns.end(), 0);
  std::stable_sort(columns.begin(), columns.end(), [&](int64_t a, int64_t b) {
    const double first = x.At(row * kOrderColumns + a), second = x.At(row * kOrderColumns + b);
    return descending ? first > second : first < second;
  });
  return columns;
}

double RoundedSum(const Dyadic& number) { return RoundTo(number, Binary64()); }

std::vector<Reference> ReferencesOf(Step step, int64_t count) {
  Case c;
  c.id = "test/order";
  c.tensors = {Tensor("x", DType::kFloat32, {kOrderRows, kOrderColumns})};
  step.as = "result";
  c.program = {std::move(step)};
  c.observe = {"result"};
  const auto oracle = OpenCaseOracle(c, OrderInputs());
  if (!oracle) return {};
  std::vector<int64_t> elements(static_cast<size_t>(count));
  std::iota(elements.begin(), elements.end(), 0);
  return (*oracle)->References("result", elements);
}

Step Along(const char* op, std::map<std::string, Attr> attrs) {
  Step step = MakeStep(op, {"x"}, "result");
  step.attrs = std::move(attrs);
  return step;
}

TEST(Order, ValuesAreThoseOfASortedLine) {
  const auto inputs = OrderInputs();
  const TensorData& x = inputs.at("x");
  int64_t checked = 0;
  for (const bool descending : {false, true}) {
    const auto references =
        ReferencesOf(Along("sort", {{"dim", {.value = int64_t{1}}}, {"descending", {.value = descending}}}),
                     kOrderRows * kOrderColumns);
    ASSERT_EQ(references.size(), static_cast<size_t>(kOrderRows * kOrderColumns));
    for (int64_t row = 0; row < kOrderRows; ++row) {
      const auto order = Ordered(x, row, descending);
      for (int64_t place = 0; place < kOrderColumns; ++place) {
        const Reference& found = references[static_cast<size_t>(row * kOrderColumns + place)];
        EXPECT_EQ(found.hi, x.At(row * kOrderColumns + order[static_cast<size_t>(place)]))
            << row << ", " << place;
        ++checked;
      }
    }
  }
  EXPECT_EQ(checked, 2 * kOrderRows * kOrderColumns);
}

TEST(Order, AStableSortHasOneOrder) {
  const auto inputs = OrderInputs();
  const auto references = ReferencesOf(
      Along("sort",
            {{"dim", {.value = int64_t{1}}}, {"stable", {.value = true}}, {"result", {.value = int64_t{1}}}}),
      kOrderRows * kOrderColumns);
  ASSERT_EQ(references.size(), static_cast<size_t>(kOrderRows * kOrderColumns));
  for (int64_t row = 0; row < kOrderRows; ++row) {
    const auto order = Ordered(inputs.at("x"), row, false);
    for (int64_t place = 0; place < kOrderColumns; ++place) {
      const Reference& found = references[static_cast<size_t>(row * kOrderColumns + place)];
      ASSERT_NE(found.kind, ReferenceKind::kUndecided);
      EXPECT_EQ(found.hi, static_cast<double>(order[static_cast<size_t>(place)])) << row << ", " << place;
      EXPECT_EQ(found.err, 0);
    }
  }
}

TEST(Order, OfEqualsTheFirstIsMeant) {
  const auto inputs = OrderInputs();
  const TensorData& x = inputs.at("x");
  int64_t ties = 0;
  for (const bool largest : {false, true}) {
    const char* op = largest ? "argmax" : "argmin";
    const auto references = ReferencesOf(Along(op, {{"dim", {.value = int64_t{-1}}}}), kOrderRows);
    ASSERT_EQ(references.size(), static_cast<size_t>(kOrderRows));
    for (int64_t row = 0; row < kOrderRows; ++row) {
      const auto order = Ordered(x, row, largest);
      ties += x.At(row * kOrderColumns + order[0]) == x.At(row * kOrderColumns + order[1]);
      const Reference& found = references[static_cast<size_t>(row)];
      ASSERT_NE(found.kind, ReferenceKind::kUndecided) << op << ", row " << row;
      EXPECT_EQ(found.hi, static_cast<double>(order[0])) << op << ", row " << row;
    }
    const auto whole = ReferencesOf(Along(op, {}), 1);
    ASSERT_EQ(whole.size(), 1u);
    int64_t at = 0;
    for (int64_t i = 1; i < x.size(); ++i) {
      if (largest ? x.At(i) > x.At(at) : x.At(i) < x.At(at)) at = i;
    }
    EXPECT_EQ(whole[0].hi, static_cast<double>(at)) << op;
  }
  EXPECT_GT(ties, 0);
}

TEST(Order, AnyAndAllTakeForTrueWhatIsNoZero) {
  const auto inputs = OrderInputs();
  const TensorData& x = inputs.at("x");
  int64_t mixed = 0;
  for (const bool every : {false, true}) {
    const auto references = ReferencesOf(
        Along(every ? "all" : "any", {{"dim", {.value = Attr::List{{.value = int64_t{1}}}}}}), kOrderRows);
    ASSERT_EQ(references.size(), static_cast<size_t>(kOrderRows));
    for (int64_t row = 0; row < kOrderRows; ++row) {
      int64_t zeros = 0;
      for (int64_t column = 0; column < kOrderColumns; ++column)
        zeros += x.At(row * kOrderColumns + column) == 0;
      mixed += zeros > 0 && zeros < kOrderColumns;
      EXPECT_EQ(references[static_cast<size_t>(row)].hi, every ? zeros == 0 : zeros < kOrderColumns) << row;
    }
  }
  EXPECT_GT(mixed, 0);
}

/// Either number of a tie is right, and no other.
TEST(Order, TheNumberOfATieIsAnyOfThem) {
  const auto line = [](std::initializer_list<double> values) {
    std::vector<Real> reals;
    for (const double value : values) reals.push_back(Real::From(value));
    return reals;
  };
  PlanNode node{.kind = NodeKind::kPlace, .part = RankedAlong{{}, {.place = 0, .descending = true}}};
  Ranking& ranking = node.Get<RankedAlong>().ranking;
  const Real tie = RankOf(node, std::span<const Real>(line({3, 5, 1, 5, 2})));
  EXPECT_EQ(RoundedSum(tie.lo()), 1);
  EXPECT_EQ(RoundedSum(tie.hi()), 3);
  ranking.stable = true;
  const Real first = RankOf(node, std::span<const Real>(line({3, 5, 1, 5, 2})));
  EXPECT_EQ(RoundedSum(first.lo()), 1);
  EXPECT_EQ(RoundedSum(first.hi()), 1);
  ranking = {.place = 2, .descending = true};
  const Real alone = RankOf(node, std::span<const Real>(line({3, 5, 1, 5, 2})));
  EXPECT_EQ(RoundedSum(alone.lo()), 0);
  EXPECT_EQ(RoundedSum(alone.hi()), 0);
}

TEST(Order, EnclosuresThatOverlapMayStandEitherWay) {
  const std::vector<Interval> line{
      {.lo = 0, .hi = 2}, {.lo = 1, .hi = 3}, {.lo = 5, .hi = 6}, {.lo = -4, .hi = -3}};
  PlanNode node{.kind = NodeKind::kRanked, .part = RankedAlong{{}, {.place = 1}}};
  Ranking& ranking = node.Get<RankedAlong>().ranking;
  const Interval second = RankOf(node, std::span<const Interval>(line));
  EXPECT_EQ(second.lo, 0);
  EXPECT_EQ(second.hi, 2);
  node.kind = NodeKind::kPlace;
  const Interval which = RankOf(node, std::span<const Interval>(line));
  EXPECT_EQ(which.lo, 0);
  EXPECT_EQ(which.hi, 1);
  ranking.place = 3;
  EXPECT_EQ(RankOf(node, std::span<const Interval>(line)).hi, 2);
}

TEST(Order, NansStandWhereTheOpPutsThem) {
  const std::vector<Real> line{Real::From(3.0), DomainValue(kNotANumber), Real::From(5.0)};
  PlanNode node{.kind = NodeKind::kPlace,
                .part = RankedAlong{{}, {.place = 0, .descending = true, .nan_first = true}}};
  Ranking& ranking = node.Get<RankedAlong>().ranking;
  EXPECT_EQ(RoundedSum(RankOf(node, std::span<const Real>(line)).lo()), 1);
  ranking = {.place = 2};
  EXPECT_EQ(RoundedSum(RankOf(node, std::span<const Real>(line)).lo()), 1);
  node.kind = NodeKind::kRanked;
  EXPECT_TRUE(std::isnan(RankOf(node, std::span<const Real>(line)).domain()));
  ranking.place = 1;
  EXPECT_EQ(RoundedSum(RankOf(node, std::span<const Real>(line)).hi()), 5);
}

}  // namespace
}  // namespace ulpscope
