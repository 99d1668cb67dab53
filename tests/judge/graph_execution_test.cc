// Which node of a trace a widening takes its narrow value from: one that computed it, or one that only hands
// it on.
#include "harness/judge/graph_execution.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/judge/make.h"

namespace ulpscope {
namespace {

using testing::Classify;
using testing::Model;
using testing::Value;

TraceNode Node(int64_t id, std::string op, std::vector<int64_t> from, std::string dtype,
               int64_t parent = -1) {
  return {.id = id,
          .parent = parent,
          .stage = "hlo",
          .op = std::move(op),
          .from = std::move(from),
          .inputs = {},
          .outputs = {{.dtype = std::move(dtype), .shape = {2, 2}}}};
}

/// What is found where the last of `nodes` widens bfloat16 and the numbers keep float32.
std::optional<GraphGap> Find(const std::vector<TraceNode>& nodes) {
  CaseResult result;
  result.outcome.kind = OutcomeKind::kCompleted;
  result.values["r"] = Value(Classify({Model("float32", "none")}));
  result.value_order = {"r"};
  result.casts = {{.from = "bfloat16",
                   .to = "float32",
                   .shape = {2, 2},
                   .bytes = 16,
                   .under = "convert",
                   .stage = "hlo",
                   .redundant = false,
                   .node = nodes.back().id}};
  return FindVanishedRounding(result, nodes);
}

TEST(GraphExecution, AValueThatWasComputedNarrowIsARoundingPoint) {
  const std::vector<TraceNode> nodes{Node(0, "parameter", {}, "bfloat16"), Node(1, "dot", {0}, "bfloat16"),
                                     Node(2, "convert", {1}, "float32")};
  const auto found = Find(nodes);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->format, "bfloat16");
  EXPECT_EQ(found->from, "hlo");
  EXPECT_EQ(found->to, "execution");
}

TEST(GraphExecution, AValueThatCameInNarrowIsNone) {
  EXPECT_FALSE(Find({Node(0, "parameter", {}, "bfloat16"), Node(1, "convert", {0}, "float32")}));
  EXPECT_FALSE(Find({Node(0, "input", {}, "bfloat16"), Node(1, "aten::view", {0}, "bfloat16"),
                     Node(2, "convert", {1}, "float32")}));
}

TEST(GraphExecution, WhatIsHandedIntoAFusionIsWhatItWasOutside) {
  const std::vector<TraceNode> outside{
      Node(0, "parameter", {}, "bfloat16"), Node(1, "fusion wide", {0}, "float32"),
      Node(2, "parameter", {0}, "bfloat16", 1), Node(3, "convert", {2}, "float32", 1)};
  EXPECT_FALSE(Find(outside));
  std::vector<TraceNode> computed = outside;
  computed.insert(computed.begin() + 1, Node(7, "fusion narrow", {0}, "bfloat16"));
  computed[3].from = {7};
  EXPECT_TRUE(Find(computed));
  EXPECT_FALSE(
      Find({Node(0, "input", {}, "bfloat16"), Node(1, "jit", {0}, "float32"),
            Node(2, "input", {0}, "bfloat16", 1), Node(3, "convert_element_type", {2}, "float32", 1)}));
}

TEST(GraphExecution, WhatAKernelLoadsIsWhatTheCallBeforeItMade) {
  const auto loaded = [](const std::string& maker, std::vector<int64_t> from) {
    return Find({Node(0, "input", {}, "bfloat16"), Node(1, maker, std::move(from), "bfloat16"),
                 Node(2, "cpp_fused_0", {1}, "float32"), Node(3, "load in_ptr0", {1}, "bfloat16", 2),
                 Node(4, "convert", {3}, "float32", 2)});
  };
  EXPECT_TRUE(loaded("extern_kernels.mm", {0}));
  EXPECT_FALSE(loaded("input", {}));
}

}  // namespace
}  // namespace ulpscope
