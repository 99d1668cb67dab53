// Which node of a trace a widening takes its narrow value from: one that computed it, or one that only hands
// it on.
#include "harness/judge/graph_execution.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/judge/make.h"
#include "tests/support/models.h"

namespace ulpscope {
namespace {

using testing::Classify;
using testing::Model;
using testing::Value;

using enum TraceKind;

TraceNode Node(int64_t id, TraceKind kind, std::vector<int64_t> from, std::string dtype,
               int64_t parent = -1) {
  return {.id = id,
          .parent = parent,
          .stage = "hlo",
          .kind = kind,
          .op = "spelled as a stack likes",
          .from = std::move(from),
          .inputs = {},
          .outputs = {{.dtype = std::move(dtype), .shape = {2, 2}}}};
}

/// Node `id` widens bfloat16.
Cast WideningCast(int64_t id) {
  return {.from = "bfloat16",
          .to = "float32",
          .shape = {2, 2},
          .bytes = 16,
          .under = "convert",
          .stage = "hlo",
          .redundant = false,
          .node = id};
}

/// What is found where the last of `nodes` widens bfloat16 and the numbers keep float32.
std::optional<GraphGap> Find(const std::vector<TraceNode>& nodes) {
  CaseResult result;
  result.outcome.kind = OutcomeKind::kCompleted;
  result.values["r"] = Value(Classify({Model("float32", "none")}));
  result.value_order = {"r"};
  result.casts = {WideningCast(nodes.back().id)};
  return FindVanishedRounding(result, nodes);
}

TEST(GraphExecution, AValueThatWasComputedNarrowIsARoundingPoint) {
  for (const TraceKind maker : {kCompute, kProduct, kKernel, kFusion}) {
    const auto found = Find({Node(0, kInput, {}, "bfloat16"), Node(1, maker, {0}, "bfloat16"),
                             Node(2, kConvert, {1}, "float32")});
    ASSERT_TRUE(found) << Name(maker);
    EXPECT_EQ(found->format, "bfloat16");
    EXPECT_EQ(found->from, "hlo");
    EXPECT_EQ(found->to, "execution");
  }
}

TEST(GraphExecution, WhatIsStoredNarrowBeforeTheLastStepIsRounded) {
  // n is stored in bfloat16, and r computed from it in float32: that the last step rounds nothing says nothing of n.
  const std::vector<TraceNode> trace{Node(0, kInput, {}, "float32"), Node(1, kCompute, {0}, "bfloat16"),
                                     Node(2, kConvert, {1}, "float32")};
  CaseResult result;
  result.outcome.kind = OutcomeKind::kCompleted;
  result.values["r"] = Value(Classify({Model("float32", "none")}));
  result.values["r"].classification.piece = "step";
  result.value_order = {"r"};
  result.casts = {WideningCast(2)};
  ValueResult narrow = Value(Classify({Model("float32", "none")}));
  narrow.dtype = DType::kBfloat16;
  result.opened = OpenedRun{.steps = {{.value = "n", .op = "cast", .result = narrow},
                                      {.value = "r", .op = "mul", .result = result.values["r"]}},
                            .changed = {},
                            .left_out = {}};
  auto& reads = result.opened->steps[1].result.classification.reads["n"];
  reads = {"unrounded"};
  EXPECT_TRUE(FindVanishedRounding(result, trace));
  reads = {"stored"};
  EXPECT_FALSE(FindVanishedRounding(result, trace));
  result.opened.reset();
  result.values["r"].classification.piece = "asked";
  result.values["r"].classification.on_the_way["n"] = {"rounded"};
  EXPECT_FALSE(FindVanishedRounding(result, trace));
}

TEST(GraphExecution, AValueThatCameInNarrowIsNone) {
  EXPECT_FALSE(Find({Node(0, kInput, {}, "bfloat16"), Node(1, kConvert, {0}, "float32")}));
  for (const TraceKind between : {kView, kMove})
    EXPECT_FALSE(Find({Node(0, kInput, {}, "bfloat16"), Node(1, between, {0}, "bfloat16"),
                       Node(2, kConvert, {1}, "float32")}))
        << Name(between);
}

TEST(GraphExecution, WhatIsHandedIntoAFusionIsWhatItWasOutside) {
  const std::vector<TraceNode> outside{Node(0, kInput, {}, "bfloat16"), Node(1, kFusion, {0}, "float32"),
                                       Node(2, kMove, {0}, "bfloat16", 1),
                                       Node(3, kConvert, {2}, "float32", 1)};
  EXPECT_FALSE(Find(outside));
  std::vector<TraceNode> computed = outside;
  computed.insert(computed.begin() + 1, Node(7, kFusion, {0}, "bfloat16"));
  computed[3].from = {7};
  EXPECT_TRUE(Find(computed));
  EXPECT_FALSE(Find({Node(0, kInput, {}, "bfloat16"), Node(1, kCompute, {0}, "float32"),
                     Node(2, kMove, {0}, "bfloat16", 1), Node(3, kConvert, {2}, "float32", 1)}));
}

TEST(GraphExecution, AFusionGivesWhatItsLastNodeGivesAndAKernelWhatItComputes) {
  const auto given = [](TraceKind kernel) {
    return Find({Node(0, kInput, {}, "bfloat16"), Node(1, kernel, {0}, "bfloat16"),
                 Node(2, kMove, {0}, "bfloat16", 1), Node(3, kConvert, {1}, "float32")});
  };
  EXPECT_FALSE(given(kFusion)) << "it hands on what came in";
  EXPECT_TRUE(given(kKernel)) << "which of its nodes gives which result is not told";
}

TEST(GraphExecution, WhatGoesIntoProductsAloneIsNoResult) {
  const auto read_by = [](TraceKind reader) {
    std::vector<TraceNode> nodes{Node(0, kInput, {}, "bfloat16"), Node(1, kCompute, {0}, "bfloat16"),
                                 Node(3, kView, {4}, "float32"), Node(5, reader, {3}, "float32"),
                                 Node(4, kConvert, {1}, "float32")};
    return Find(nodes).has_value();
  };
  EXPECT_FALSE(read_by(kProduct));
  EXPECT_FALSE(read_by(kFusion));
  for (const TraceKind reader : {kCompute, kKernel, kConvert, kMove, kView})
    EXPECT_TRUE(read_by(reader)) << Name(reader);
}

TEST(GraphExecution, WhatAKernelLoadsIsWhatTheCallBeforeItMade) {
  const auto loaded = [](TraceKind maker, std::vector<int64_t> from) {
    return Find({Node(0, kInput, {}, "bfloat16"), Node(1, maker, std::move(from), "bfloat16"),
                 Node(2, kKernel, {1}, "float32"), Node(3, kMove, {1}, "bfloat16", 2),
                 Node(4, kConvert, {3}, "float32", 2)});
  };
  EXPECT_TRUE(loaded(kProduct, {0}));
  EXPECT_FALSE(loaded(kInput, {}));
}

/// Operand `a` rounded to the first of `proved` formats or the next one.
CaseResult WithOperands(const std::vector<std::string>& proved, const std::vector<std::string>& likely) {
  const auto models = [](const std::vector<std::string>& words) {
    std::vector<PrecisionModel> made;
    for (const std::string& word : words) {
      made.push_back(Model("float32", "none"));
      made.back().in = testing::Ins({{"a", word}});
    }
    return made;
  };
  CaseResult result;
  result.outcome.kind = OutcomeKind::kCompleted;
  result.values["r"] = Value(Classify(models(likely)));
  result.values["r"].classification.models_proved = models(proved);
  result.value_order = {"r"};
  return result;
}

TEST(GraphExecution, OperandsThatNoStageNamesAreSaidInEveryFormatOfAsManyBits) {
  const std::vector<TraceNode> trace{Node(0, kProduct, {}, "float32")};
  const auto both =
      FindAppearedRounding(WithOperands({"float16_rne", "tf32_rne"}, {"float16_rne", "tf32_rne"}), trace);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->format, "float16 or tf32 operands");
  const auto one = FindAppearedRounding(WithOperands({"float16_rne", "tf32_rna"}, {"tf32_rna"}), trace);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->format, "a rounding, likely tf32_rna operands");
  // A stage that names it: an operand as tf32 under the kernel.
  std::vector<TraceNode> named = trace;
  named.push_back(Node(1, kCompute, {}, "tf32", 0));
  EXPECT_FALSE(FindAppearedRounding(WithOperands({"float16_rne", "tf32_rne"}, {"tf32_rne"}), named));
}

}  // namespace
}  // namespace ulpscope
