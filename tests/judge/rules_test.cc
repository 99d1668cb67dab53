// The tables of rules: each row is whole, and the test that it names is one of this program.
#include "harness/judge/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "harness/judge/classify.h"
#include "oracles/models.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

std::set<std::string> TestsOfThisProgram() {
  std::set<std::string> names;
  const auto& all = *::testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const auto& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t)
      names.insert(std::string(suite.name()) + "." + suite.GetTestInfo(t)->name());
  }
  return names;
}

bool IsKebabCase(std::string_view name) {
  const auto is_part_of_it = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !name.empty() && name.front() != '-' && name.back() != '-' &&
         std::ranges::all_of(name, is_part_of_it);
}

TEST(RuleByRule, EachRowIsWholeAndItsTestIsThere) {
  const std::set<std::string> tests = TestsOfThisProgram();
  std::set<std::string_view> names;
  for (const RuleTable& table : RuleTables()) {
    EXPECT_FALSE(table.rules.empty()) << table.name;
    for (const ClassifierRule& rule : table.rules) {
      EXPECT_TRUE(IsKebabCase(rule.name)) << rule.name;
      EXPECT_TRUE(names.insert(rule.name).second) << rule.name << " stands twice";
      EXPECT_NE(rule.when, nullptr) << rule.name;
      EXPECT_NE(rule.apply, nullptr) << rule.name;
      EXPECT_TRUE(rule.place.ends_with('.')) << rule.name;
      EXPECT_TRUE(rule.test.empty() || tests.contains(std::string(rule.test)))
          << rule.name << ": " << rule.test;
    }
  }
  EXPECT_EQ(names.size(), 66u);
}

/// The outcome names the last rule that changed which models are likely, and not one that looked and left them.
TEST(RuleByRule, TheLastOneThatChangedTheModelsIsNamed) {
  const Case c = testing::MatmulCase(DType::kBfloat16, DType::kFloat32, 16, 100, 16);
  const auto inputs = testing::NormalInputs(c, 1);
  const auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle);
  PrecisionModel model;
  const auto values = EmulateProgram(c, inputs, model, "sequential");
  ASSERT_TRUE(values);
  const TensorData& product = values->at("product");
  const auto decided_by = [&](const ClassifyOptions& options) {
    return ClassifyValue(**oracle, "product", product, options).decided_by;
  };
  EXPECT_EQ(decided_by({}), "within-keep-factor");
  EXPECT_EQ(decided_by({.evidence = ClassifyOptions::Evidence::kHard}), "bank");
}

}  // namespace
}  // namespace ulpscope
