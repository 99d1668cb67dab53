// Adapters refuse what an op does not take.
#include "backends/sdk/vocabulary.h"

#include <gtest/gtest.h>

namespace ulpscope {
namespace {

TEST(Vocabulary, AnUnknownAttributeIsNamedInsideScopesToo) {
  sdk::Step step;
  step.op = "neg";
  step.attrs = {{"alpha", Attr{.value = int64_t{2}}}};
  EXPECT_EQ(sdk::UnknownAttribute({step}), "op 'neg' has no attribute 'alpha'");
  sdk::Step scope;
  scope.op = "no_grad";
  scope.steps = {step};
  EXPECT_NE(sdk::UnknownAttribute({scope}), "");
  step.op = "add";
  EXPECT_EQ(sdk::UnknownAttribute({step}), "");
  step.op = "aten::neg";
  step.attrs = {{"anything", Attr{.value = int64_t{1}}}};
  EXPECT_EQ(sdk::UnknownAttribute({step}), "") << "its schema is the framework's";
}

}  // namespace
}  // namespace ulpscope
