// Which side is nearer, on numbers that are written out.
#include "harness/ledger/nearer.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace ulpscope {
namespace {

TensorData Floats(const std::vector<double>& elements) {
  TensorData tensor = TensorData::Zeros(DType::kFloat32, {static_cast<int64_t>(elements.size())});
  for (size_t i = 0; i < elements.size(); ++i) tensor.Set(static_cast<int64_t>(i), elements[i]);
  return tensor;
}

std::optional<Nearness> Measured(const std::vector<double>& exact, const std::vector<double>& a,
                                 const std::vector<double>& b) {
  std::vector<int64_t> elements;
  std::vector<Reference> references;
  for (size_t i = 0; i < exact.size(); ++i) {
    elements.push_back(static_cast<int64_t>(i));
    references.push_back({.hi = exact[i], .kind = ReferenceKind::kExact});
  }
  return MeasureNearness(elements, references, Floats(a), Floats(b));
}

TEST(MeasureNearness, ErrorsAreAbsoluteAndTheWorstElementIsNamed) {
  const auto found = Measured({1, 2, 3, 4}, {1, 2.5, 3, 4}, {1.25, 2, 2, 4});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->elements, 4);
  EXPECT_DOUBLE_EQ(found->first.rms, 0.25);
  EXPECT_EQ(found->first.worst, 1);
  EXPECT_DOUBLE_EQ(found->first.observed, 2.5);
  EXPECT_DOUBLE_EQ(found->first.exact, 2);
  EXPECT_DOUBLE_EQ(found->second.largest, 1);
  EXPECT_EQ(found->second.worst, 2);
  EXPECT_DOUBLE_EQ(found->second.median, 0.25);
  EXPECT_EQ(found->nearer, Nearness::Side::kNeither) << "of four elements either may be by chance";
}

TEST(MeasureNearness, OfManyElementsTheOneWithSmallerErrorsIsNearer) {
  std::vector<double> exact, a, b;
  for (int i = 0; i < 100; ++i) {
    exact.push_back(i);
    a.push_back(i + 0.25 + 0.001 * (i % 7));
    b.push_back(i + 0.5 + 0.001 * (i % 5));
  }
  EXPECT_EQ(Measured(exact, a, b)->nearer, Nearness::Side::kFirst);
  EXPECT_EQ(Measured(exact, b, a)->nearer, Nearness::Side::kSecond);
  EXPECT_EQ(Measured(exact, a, a)->nearer, Nearness::Side::kNeither);
}

TEST(MeasureNearness, WhatIsInfiniteHasNoSize) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto found = Measured({1, 2}, {inf, 2}, {1, 2});
  EXPECT_EQ(found->first.largest, inf);
  EXPECT_EQ(found->first.worst, 0);
  EXPECT_EQ(found->nearer, Nearness::Side::kNeither);
}

TEST(MeasureNearness, WithoutAnExactResultThereIsNone) {
  const std::vector<int64_t> elements{0};
  const std::vector<Reference> references{{.kind = ReferenceKind::kUndecided}};
  EXPECT_FALSE(MeasureNearness(elements, references, Floats({1}), Floats({2})).has_value());
}

}  // namespace
}  // namespace ulpscope
