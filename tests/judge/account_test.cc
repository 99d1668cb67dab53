// The account: what is said of every two groups of backends whose stored bits differ.
#include "harness/judge/account.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "tests/judge/make.h"

namespace ulpscope {
namespace {

using testing::Completed;
using testing::Tensor;

/// Runs of one case that observes `x`.
class Runs {
 public:
  Runs& Add(const std::string& backend, const std::vector<double>& numbers, DType dtype = DType::kFloat32) {
    Observation& observation = observations_.emplace_back(Completed({{"x", Tensor(dtype, {2}, numbers)}}));
    CaseResult& result = results_.emplace_back();
    result.id = "case";
    result.backend = backend;
    result.status = Status::kPass;
    result.outcome = observation.outcome;
    result.value_order = {"x"};
    participants_.push_back({.result = &result, .observation = &observation});
    return *this;
  }
  Observation& Last() { return observations_.back(); }
  std::vector<AccountEntry> Take(const std::vector<Divergence>& divergences = {}) const {
    return TakeAccount(participants_, divergences);
  }

 private:
  std::list<Observation> observations_;
  std::list<CaseResult> results_;
  std::vector<Participant> participants_;
};

Divergence Apart(DivergenceKind kind, std::vector<std::string> left, std::vector<std::string> right) {
  Divergence divergence;
  divergence.case_id = "case";
  divergence.kind = kind;
  divergence.value = "x";
  divergence.backends = {std::move(left), std::move(right)};
  return divergence;
}

using Words = std::vector<std::string>;

TEST(Account, ADifferenceOfWhichNothingIsSaidIsUncovered) {
  Runs runs;
  runs.Add("a", {1, 2}).Add("b", {1, 2.5}).Add("c", {1, 2});
  const auto account = runs.Take();
  ASSERT_EQ(account.size(), 1u) << "a and c have the same bits";
  EXPECT_EQ(account[0].backends, (std::vector<Words>{{"a", "c"}, {"b"}}));
  EXPECT_TRUE(account[0].by.empty());
  EXPECT_EQ(account[0].size.most, 1);
  EXPECT_EQ(account[0].size.elements, 2);
  EXPECT_EQ(account[0].size.largest, 0.5);
  EXPECT_EQ(account[0].size.scale, 2.5);
  RunReport report;
  report.account = account;
  EXPECT_EQ(ExitCode(report, Interruption::kNone), 3);
}

TEST(Account, WhatNothingSpeaksOfIsToldByItsSize) {
  Runs runs;
  runs.Add("a", {1, 2}).Add("b", {1, 2.5}).Add("c", {1, 2});
  const Divergence rest = TellBySize(runs.Take().at(0));
  EXPECT_EQ(rest.sentence, "a and c differ from b in `x` (1 of 2 elements, by up to 0.5).");
  EXPECT_EQ(rest.size.most, 1);
  EXPECT_EQ(runs.Take({rest}).at(0).by, Words{"value"});
}

TEST(Account, EveryPairOfTheTwoGroupsHasToBeSpokenOf) {
  Runs runs;
  runs.Add("a", {1, 2}).Add("b", {1, 2.5}).Add("c", {1, 2});
  using enum DivergenceKind;
  EXPECT_EQ(runs.Take({Apart(kValue, {"a", "c"}, {"b"})}).at(0).by, Words{"value"});
  EXPECT_EQ(runs.Take({Apart(kValue, {"b"}, {"c"}), Apart(kOrder, {"a"}, {"b"})}).at(0).by,
            (Words{"order", "value"}));
  EXPECT_TRUE(runs.Take({Apart(kValue, {"a"}, {"b"})}).at(0).by.empty()) << "c and b";
  EXPECT_TRUE(runs.Take({Apart(kCasts, {"a", "c"}, {"b"})}).at(0).by.empty())
      << "casts are told of equal bits";
}

TEST(Account, AValueThatChangesFromRunToRunIsToldByItsStatus) {
  Runs runs;
  runs.Add("a", {1, 2}).Add("b", {1, 2.5});
  runs.Last().nondeterministic["x"] = 1;
  EXPECT_EQ(runs.Take().at(0).by, Words{"nondeterministic"});
}

TEST(Account, SignsOfZerosAreBitsAndPayloadsOfNansAreNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(Runs().Add("a", {0.0, 2}).Add("b", {-0.0, 2}).Take().at(0).by.empty());
  EXPECT_EQ(Runs().Add("a", {nan, 2}).Add("b", {-nan, 2}).Take().at(0).by, Words{"nan_payload"});
}

TEST(Account, AnotherDtypeIsADifferenceWithoutASize) {
  const auto account = Runs().Add("a", {1, 2}).Add("b", {1, 2}, DType::kBfloat16).Take();
  ASSERT_EQ(account.size(), 1u);
  EXPECT_EQ(account[0].size.elements, 0);
  EXPECT_TRUE(account[0].by.empty());
}

}  // namespace
}  // namespace ulpscope
