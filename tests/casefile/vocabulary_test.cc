// The case language and the adapters' SDK know the same attributes of the same ops.
#include "backends/sdk/vocabulary.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "harness/casefile/ops.h"

namespace ulpscope {
namespace {

TEST(Vocabulary, TheSdkAndTheCaseLanguageKnowTheSameAttributes) {
  int checked = 0;
  for (const OpRow& row : Ops()) {
    const auto* known = sdk::AttributesOf(std::string(row.name));
    if (known == nullptr) continue;  // left to the adapters that serve it
    ++checked;
    std::set<std::string_view> ours, theirs(known->begin(), known->end());
    for (const Field& field : row.attributes) ours.insert(field.key);
    EXPECT_EQ(ours, theirs) << row.name;
  }
  EXPECT_GT(checked, 50);
}

TEST(Vocabulary, AnUnknownAttributeIsNamedInsideScopesToo) {
  sdk::Step step;
  step.op = "neg";
  step.attrs = {{"alpha", 2}};
  EXPECT_EQ(sdk::UnknownAttribute({step}), "op 'neg' has no attribute 'alpha'");
  sdk::Step scope;
  scope.op = "no_grad";
  scope.attrs = sdk::Json::object();
  scope.steps = {step};
  EXPECT_NE(sdk::UnknownAttribute({scope}), "");
  step.op = "add";
  EXPECT_EQ(sdk::UnknownAttribute({step}), "");
  step.op = "aten::neg";
  step.attrs = {{"anything", 1}};
  EXPECT_EQ(sdk::UnknownAttribute({step}), "") << "its schema is the framework's";
}

}  // namespace
}  // namespace ulpscope
