// Traces: what breaks their form, and what casts cost.
#include "harness/model/trace.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "harness/base/build_info.h"

namespace ulpscope {
namespace {

TraceNode Node(int64_t id, int64_t parent, std::string op) {
  return {.id = id, .parent = parent, .stage = "dispatch", .op = std::move(op)};
}

Cast CastAt(int64_t node, std::string from, std::string to, int64_t bytes) {
  return {.from = std::move(from),
          .to = std::move(to),
          .shape = {4, 8},
          .bytes = bytes,
          .under = "aten::linear",
          .stage = "dispatch",
          .node = node};
}

TEST(TraceProblem, NamesWhateverContradicts) {
  const std::vector<TraceNode> good{Node(7, -1, "aten::linear"), Node(3, 7, "aten::to"),
                                    Node(5, 3, "aten::copy_")};
  EXPECT_EQ(TraceProblem(good, {CastAt(5, "float32", "bfloat16", 64)}), "");
  EXPECT_EQ(TraceProblem({}, {}), "");
  const auto broken = [&](auto change) {
    auto trace = good;
    change(trace);
    return TraceProblem(trace, {});
  };
  EXPECT_EQ(broken([](auto& t) { t[1].id = 7; }), "two trace nodes with the id 7");
  EXPECT_EQ(broken([](auto& t) { t[0].id = -2; }), "a trace node with the id -2");
  EXPECT_EQ(broken([](auto& t) { t[1].parent = 9; }), "trace node 3 lies in node 9, which is none");
  EXPECT_EQ(broken([](auto& t) { t[2].from = {7, 8}; }), "trace node 5 reads node 8, which is none");
  EXPECT_EQ(broken([](auto& t) { t[0].parent = 5; }), "trace node 3 lies in itself");
  EXPECT_EQ(broken([](auto& t) { t[0].stage = "later"; }), "a trace node of the unknown stage 'later'");
  EXPECT_EQ(TraceProblem(good, {CastAt(4, "float32", "bfloat16", 64)}),
            "a cast at trace node 4, which is none");
  Cast elsewhere = CastAt(-1, "float32", "bfloat16", 64);
  elsewhere.stage = "later";
  EXPECT_EQ(TraceProblem(good, {elsewhere}), "a cast of the unknown stage 'later'");
}

TEST(TraceKinds, ComputeOrDoNot) {
  using enum TraceKind;
  for (const TraceKind kind : {kCompute, kProduct, kFusion, kKernel})
    EXPECT_TRUE(Computes(kind)) << Name(kind);
  for (const TraceKind kind : {kConvert, kView, kMove, kInput}) EXPECT_FALSE(Computes(kind)) << Name(kind);
  for (const std::string_view name : kTraceKinds) EXPECT_EQ(Name(ParseTraceKind(name).value()), name);
  EXPECT_FALSE(ParseTraceKind("transpose"));
}

TEST(TraceWords, StandInTheProtocolsDocument) {
  std::ifstream file(SourceDir() + "/backends/PROTOCOL.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const std::string_view kind : kTraceKinds)
    EXPECT_NE(text.find(std::string(kind) + " ("), text.npos) << kind << ", explained in parentheses";
  const size_t stages = text.find("`stage` is one of");
  ASSERT_NE(stages, text.npos);
  for (const std::string_view stage : kTraceStages)
    EXPECT_LT(text.find(stage, stages), text.find("`op` is shown", stages)) << stage;
}

TEST(TraceStages, AreOrderedFromTheProgramToTheMachine) {
  EXPECT_LT(StageRank("dispatch"), StageRank("post_grad"));
  EXPECT_LT(StageRank("post_grad"), StageRank("generated"));
  EXPECT_LT(StageRank("jaxpr"), StageRank("hlo"));
  EXPECT_LT(StageRank("hlo"), StageRank("hlo_optimized"));
  EXPECT_EQ(StageRank("nowhere"), kTraceStages.size());
}

TEST(CastCost, CountsBytesAndPairs) {
  auto up = CastAt(-1, "bfloat16", "float32", 128), down = CastAt(-1, "float32", "bfloat16", 64);
  up.redundant = down.redundant = true;
  auto later = CastAt(-1, "float32", "bfloat16", 64);
  later.stage = "hlo";
  const auto costs = CostOfCasts({up, down, CastAt(-1, "float32", "bfloat16", 64), later}, {});
  ASSERT_EQ(costs.size(), 2u);
  EXPECT_EQ(costs[0].stage, "dispatch");
  EXPECT_EQ(costs[0].casts, 3);
  EXPECT_EQ(costs[0].moved_bytes, 3 * 32 * 6);
  EXPECT_EQ(costs[0].redundant_pairs, 1);
  EXPECT_EQ(costs[0].redundant_bytes, 2 * 32 * 6);
  EXPECT_EQ(costs[0].extra_alive_bytes, 128);
  EXPECT_EQ(costs[1].redundant_pairs, 0);
  EXPECT_EQ(costs[1].moved_bytes, 32 * 6);
  EXPECT_TRUE(costs[0].shares.empty()) << "nothing was timed";
}

TEST(CastCost, StandsBesideTheOpsOwnTime) {
  std::vector<TraceNode> trace{Node(0, -1, "aten::linear"),  Node(1, 0, "aten::to"),
                               Node(2, 1, "aten::_to_copy"), Node(3, 2, "aten::copy_"),
                               Node(4, 0, "aten::linear"),   Node(5, -1, "aten::copy_")};
  trace[0].us = 100;
  trace[1].us = 12;
  trace[2].us = 11;
  trace[3].us = 10;
  trace[5].us = 3;
  auto under = CastAt(3, "float32", "bfloat16", 64), alone = CastAt(5, "float32", "bfloat16", 64);
  under.us = 10;
  alone.us = 3;
  const auto costs = CostOfCasts({under, alone}, trace);
  ASSERT_EQ(costs.size(), 1u);
  ASSERT_EQ(costs[0].shares.size(), 1u) << "a cast that stands alone is no op's share";
  EXPECT_EQ(costs[0].shares[0].under, "aten::linear");
  EXPECT_DOUBLE_EQ(costs[0].shares[0].casts_us, 10);
  EXPECT_DOUBLE_EQ(costs[0].shares[0].op_us, 90);
  EXPECT_EQ(costs[0].shares[0].before, "");
}

TEST(CastCost, OfACastThatStandsAloneStandsBesideTheOpThatReadsIt) {
  std::vector<TraceNode> trace{
      Node(0, -1, "aten::to"),         Node(1, 0, "aten::_to_copy"),          Node(2, 1, "aten::copy_"),
      Node(3, -1, "aten::layer_norm"), Node(4, 3, "aten::native_layer_norm"), Node(5, -1, "aten::relu")};
  trace[3].from = trace[4].from = {0};
  trace[5].from = {3};
  for (TraceNode& node : trace) node.us = 20;
  trace[3].us = 100;
  auto up = CastAt(2, "bfloat16", "float32", 128);
  up.us = 20;  // an adapter prices a conversion as a whole
  const auto costs = CostOfCasts({up}, trace);
  ASSERT_EQ(costs.size(), 1u);
  ASSERT_EQ(costs[0].shares.size(), 1u);
  EXPECT_EQ(costs[0].shares[0].under, "aten::to");
  EXPECT_EQ(costs[0].shares[0].before, "aten::layer_norm");
  EXPECT_DOUBLE_EQ(costs[0].shares[0].casts_us, 20);
  EXPECT_DOUBLE_EQ(costs[0].shares[0].op_us, 100);
  trace[3].from = trace[4].from = {};
  EXPECT_TRUE(CostOfCasts({up}, trace)[0].shares.empty()) << "nothing is known to read it";
}

TEST(CastCost, BeforeAnOpAndInsideItAreToldApart) {
  std::vector<TraceNode> trace{Node(0, -1, "aten::to"), Node(1, -1, "aten::matmul"), Node(2, 1, "aten::to")};
  trace[0].us = 5;
  trace[1].us = 100;
  trace[2].us = 30;
  trace[1].from = {0};
  auto before = CastAt(0, "float32", "float16", 64), inside = CastAt(2, "float32", "bfloat16", 64);
  before.us = 5;
  inside.us = 30;
  const auto shares = CostOfCasts({before, inside}, trace).at(0).shares;
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].before, "aten::matmul");
  EXPECT_DOUBLE_EQ(shares[0].casts_us, 5);
  EXPECT_DOUBLE_EQ(shares[0].op_us, 100);
  EXPECT_EQ(shares[1].under, "aten::matmul");
  EXPECT_EQ(shares[1].before, "");
  EXPECT_DOUBLE_EQ(shares[1].casts_us, 30);
  EXPECT_DOUBLE_EQ(shares[1].op_us, 70);
}

TEST(CastCost, MovesNoMemoryInsideAKernelThatComputesToo) {
  using enum TraceKind;
  const auto at = [](TraceKind kernel, TraceKind other) {
    std::vector<TraceNode> trace{Node(0, -1, "graph"), Node(1, 0, "f"), Node(2, 1, "p"), Node(3, 1, "c"),
                                 Node(4, 1, "other")};
    trace[1].kind = kernel;
    trace[2].kind = kInput;
    trace[3].kind = kConvert;
    trace[4].kind = other;
    return CostOfCasts({CastAt(3, "bfloat16", "float32", 128)}, trace).at(0);
  };
  for (const TraceKind kernel : {kFusion, kKernel}) {
    EXPECT_EQ(at(kernel, kCompute).in_kernels, 1);
    EXPECT_EQ(at(kernel, kCompute).moved_bytes, 0);
    for (const TraceKind other : {kMove, kView, kInput, kConvert})
      EXPECT_EQ(at(kernel, other).moved_bytes, 32 * 6) << "the kernel is the conversion";
  }
  EXPECT_EQ(at(kCompute, kCompute).moved_bytes, 32 * 6) << "a call is no kernel";
}

}  // namespace
}  // namespace ulpscope
