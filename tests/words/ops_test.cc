// The op table means what it states.
#include "harness/words/ops.h"

#include <gtest/gtest.h>

#include <set>

namespace ulpscope {
namespace {

TEST(Ops, EachWordStandsOnceAndEachOfItsAttributesToo) {
  std::set<std::string_view> words;
  for (const OpRow& row : Ops()) {
    EXPECT_TRUE(words.insert(row.name).second) << row.name;
    EXPECT_LE(row.operands.fewest, row.operands.most) << row.name;
    std::set<std::string_view> keys;
    for (const OpAttribute& attribute : row.attributes) {
      EXPECT_TRUE(keys.insert(attribute.key).second) << row.name << " " << attribute.key;
      EXPECT_EQ(attribute.kind == AttrKind::kWord, !attribute.words.empty())
          << row.name << " " << attribute.key;
      EXPECT_FALSE(attribute.about.empty()) << row.name << " " << attribute.key;
    }
    EXPECT_EQ(FindOp(row.name), &row);
  }
  EXPECT_GT(words.size(), 50u);
}

TEST(Ops, WhatGivesAValueHasAnExample) {
  // Uninitialised memory has no expected value, fsdp_linear wants parameters, and the logarithm of a sigmoid
  // is a number that no dtype holds.
  const std::set<std::string_view> without{"empty", "fsdp_linear", "bce_with_logits", "instance_norm"};
  for (const OpRow& row : Ops())
    EXPECT_EQ(row.example.empty(), !row.GivesValue() || without.contains(row.name)) << row.name;
}

TEST(Ops, ElementwiseOnesHaveNoDimension) {
  int64_t elementwise = 0;
  for (const OpRow& row : Ops()) {
    if (!IsElementwise(row.name)) continue;
    ++elementwise;
    for (const OpAttribute& attribute : row.attributes) {
      EXPECT_NE(attribute.key, "dim") << row.name;
      EXPECT_NE(attribute.key, "dims") << row.name;
    }
  }
  EXPECT_GT(elementwise, 60);
  EXPECT_TRUE(IsElementwise("add") && IsElementwise("where"));
  for (const char* op : {"matmul", "sum", "softmax", "cumsum", "glu", "transpose", "layer_norm", "mse_loss"})
    EXPECT_FALSE(IsElementwise(op)) << op;
}

TEST(Ops, OnlyScopesHoldSteps) {
  std::set<std::string_view> scopes;
  for (const OpRow& row : Ops()) {
    if (IsScope(row.name)) scopes.insert(row.name);
  }
  EXPECT_EQ(scopes, (std::set<std::string_view>{"autocast", "enable_grad", "no_grad"}));
  EXPECT_FALSE(IsScope("aten::mm"));
}

}  // namespace
}  // namespace ulpscope
