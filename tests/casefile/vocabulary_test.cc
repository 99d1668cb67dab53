// The case language and the adapters' SDK know the same attributes of the same ops.
#include "backends/sdk/vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/casefile/ops.h"

namespace ulpscope {
namespace {

TEST(Vocabulary, TheSdkKnowsEveryAttributeOfTheCaseLanguage) {
  int checked = 0;
  for (const OpRow& row : Ops()) {
    const auto* known = sdk::AttributesOf(std::string(row.name));
    if (known == nullptr) continue;  // left to the adapters that serve it
    ++checked;
    for (const Field& field : row.attributes)
      EXPECT_NE(std::find(known->begin(), known->end(), field.key), known->end())
          << row.name << " " << field.key;
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
