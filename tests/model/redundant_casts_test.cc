// Pairs of casts that change no value, and their neighbours that do.
#include "harness/model/redundant_casts.h"

#include <gtest/gtest.h>

namespace ulpscope {
namespace {

using enum TraceKind;

/// A trace written node by node; the node's place is its id.
struct Graph {
  std::vector<TraceNode> nodes;
  std::vector<Cast> casts;

  int64_t Add(TraceKind kind, std::vector<int64_t> from, std::string dtype, int64_t parent = -1) {
    const auto id = static_cast<int64_t>(nodes.size());
    nodes.push_back({.id = id,
                     .parent = parent,
                     .stage = "hlo",
                     .kind = kind,
                     .op = "op",
                     .from = std::move(from),
                     .outputs = {{.dtype = std::move(dtype), .shape = {4}}}});
    return id;
  }
  /// A conversion of what node `of` gives.
  int64_t Convert(int64_t of, const std::string& to, int64_t parent = -1) {
    const int64_t id = Add(kConvert, {of}, to, parent);
    const std::string from = nodes[static_cast<size_t>(of)].outputs[0].dtype;
    casts.push_back(
        {.from = from, .to = to, .shape = {4}, .bytes = 8, .under = "op", .stage = "hlo", .node = id});
    return id;
  }
  std::vector<bool> Redundant() {
    MarkRedundantCasts(nodes, &casts);
    std::vector<bool> flags;
    for (const Cast& cast : casts) flags.push_back(cast.redundant);
    return flags;
  }
};

using Flags = std::vector<bool>;

TEST(RedundantCasts, UndoAWidening) {
  const auto there_and_back = [](const std::string& narrow, const std::string& wide) {
    Graph graph;
    graph.Convert(graph.Convert(graph.Add(kInput, {}, narrow), wide), narrow);
    return graph.Redundant();
  };
  EXPECT_EQ(there_and_back("bfloat16", "float32"), (Flags{true, true}));
  EXPECT_EQ(there_and_back("float8_e5m2", "float16"), (Flags{true, true}));
  EXPECT_EQ(there_and_back("float32", "bfloat16"), (Flags{false, false})) << "it rounds";
  EXPECT_EQ(there_and_back("bfloat16", "float16"), (Flags{false, false})) << "neither holds the other";
  EXPECT_EQ(there_and_back("int32", "float64"), (Flags{false, false})) << "no claim about integers";
  Graph other;  // back to another dtype than the first
  other.Convert(other.Convert(other.Add(kInput, {}, "bfloat16"), "float64"), "float32");
  EXPECT_EQ(other.Redundant(), (Flags{false, false}));
}

TEST(RedundantCasts, ThroughWhatShowsOrMovesOneValueAndNothingElse) {
  const auto between = [](TraceKind kind) {
    Graph graph;
    const int64_t wide = graph.Convert(graph.Add(kInput, {}, "bfloat16"), "float32");
    graph.Convert(graph.Add(kind, {wide}, "float32"), "bfloat16");
    return graph.Redundant();
  };
  for (const TraceKind kind : {kView, kMove}) EXPECT_EQ(between(kind), (Flags{true, true})) << Name(kind);
  for (const TraceKind kind : {kCompute, kProduct, kFusion, kKernel, kConvert, kInput})
    EXPECT_EQ(between(kind), (Flags{false, false})) << Name(kind);
  Graph chosen;  // one of two values
  const int64_t wide = chosen.Convert(chosen.Add(kInput, {}, "bfloat16"), "float32");
  chosen.Convert(chosen.Add(kMove, {wide, chosen.Add(kInput, {}, "float32")}, "float32"), "bfloat16");
  EXPECT_EQ(chosen.Redundant(), (Flags{false, false}));
}

TEST(RedundantCasts, AWideningThatSomethingElseReadsIsForThat) {
  Graph graph;
  const int64_t wide = graph.Convert(graph.Add(kInput, {}, "bfloat16"), "float32");
  graph.Convert(wide, "bfloat16");
  graph.Convert(graph.Add(kView, {wide}, "float32"), "bfloat16");
  EXPECT_EQ(graph.Redundant(), (Flags{true, true, true})) << "all that reads it converts back";
  graph.Add(kCompute, {wide}, "float32");
  EXPECT_EQ(graph.Redundant(), (Flags{false, true, true}));
  graph.nodes.back().kind = kMove;
  EXPECT_EQ(graph.Redundant(), (Flags{false, true, true})) << "a result of the graph, perhaps";
}

TEST(RedundantCasts, InsideOpsThatOnlyConvert) {
  // As a dispatcher shows it: an op around a conversion counts as the maker, and around a reader reads as
  // well.
  Graph graph;
  const int64_t narrow = graph.Add(kInput, {}, "bfloat16");
  const int64_t up = graph.Add(kConvert, {narrow}, "float32");
  graph.Add(kView, {}, "float32", up);  // memory for the result
  graph.Convert(narrow, "float32", up);
  const int64_t down = graph.Add(kCompute, {up}, "bfloat16");  // a backward formula, say
  const int64_t memory = graph.Add(kView, {}, "bfloat16", down);
  const int64_t copy = graph.Convert(up, "bfloat16", down);
  graph.nodes[static_cast<size_t>(copy)].from = {memory, up};
  const int64_t again = graph.Convert(down, "float32");
  EXPECT_EQ(graph.Redundant(), (Flags{true, true, false}));
  graph.nodes[static_cast<size_t>(down)].kind = kKernel;
  graph.Convert(again, "bfloat16");
  EXPECT_EQ(graph.Redundant(), (Flags{true, true, true, true}));
  graph.Add(kCompute, {}, "bfloat16", up);
  EXPECT_EQ(graph.Redundant(), (Flags{false, false, true, true})) << "the op computes as well";
}

TEST(RedundantCasts, WithoutNodesNothingIsSaid) {
  Graph graph;
  graph.Convert(graph.Convert(graph.Add(kInput, {}, "bfloat16"), "float32"), "bfloat16");
  for (Cast& cast : graph.casts) cast.node = -1;
  EXPECT_EQ(graph.Redundant(), (Flags{false, false}));
}

}  // namespace
}  // namespace ulpscope
