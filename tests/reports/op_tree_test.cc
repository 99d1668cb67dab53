// The op tree as text.
#include "reports/op_tree.h"

#include <gtest/gtest.h>

namespace ulpscope {
namespace {

std::vector<TraceNode> Eager() {
  const TraceTensor wide{.dtype = "float32", .shape = {66, 44}},
      narrow{.dtype = "bfloat16", .shape = {66, 44}};
  return {{.id = 0,
           .parent = -1,
           .stage = "dispatch",
           .op = "aten::linear",
           .inputs = {wide},
           .outputs = {narrow},
           .us = 158},
          {.id = 1,
           .parent = 0,
           .stage = "dispatch",
           .op = "aten::to",
           .inputs = {wide},
           .outputs = {narrow},
           .us = 33},
          {.id = 2,
           .parent = 1,
           .stage = "dispatch",
           .kind = TraceKind::kView,
           .op = "aten::empty_strided",
           .outputs = {narrow}},
          {.id = 3,
           .parent = 1,
           .stage = "dispatch",
           .op = "aten::copy_",
           .inputs = {narrow, wide},
           .outputs = {narrow},
           .us = 5.81},
          {.id = 4,
           .parent = 0,
           .stage = "dispatch",
           .kind = TraceKind::kView,
           .op = "aten::t",
           .inputs = {narrow},
           .outputs = {narrow}}};
}

const Cast kDown{.from = "float32",
                 .to = "bfloat16",
                 .shape = {66, 44},
                 .under = "aten::linear",
                 .stage = "dispatch",
                 .node = 3};

TEST(OpTree, NestsMarksConversionsAndLeavesOutHousekeeping) {
  const std::string text =
      DrawOpTree(Eager(), std::vector<Cast>{kDown}, {.console = {}, .stages = {"dispatch"}});
  EXPECT_EQ(
      text,
      "    dispatch       5 nodes, 1 conversion\n"
      "        aten::linear (f32[66,44]) -> bf16[66,44]  158 us\n"
      "          aten::to (f32[66,44]) -> bf16[66,44]  33 us\n"
      "    >       aten::copy_ (bf16[66,44], f32[66,44]) -> bf16[66,44]  5.8 us   float32 to bfloat16\n");
}

TEST(OpTree, VerboseLeavesOutNothing) {
  const ConsoleOptions verbose{.verbosity = ConsoleOptions::Verbosity::kVerbose};
  const std::string text = DrawOpTree(Eager(), std::vector<Cast>{kDown}, {.console = verbose, .stages = {}});
  EXPECT_NE(text.find("aten::empty_strided"), std::string::npos);
  EXPECT_NE(text.find("aten::t "), std::string::npos);
}

TEST(OpTree, GraphsNumberTheirNodesAndOtherStagesTakeOneLine) {
  const TraceTensor wide{.dtype = "float32", .shape = {}}, narrow{.dtype = "bfloat16", .shape = {}};
  std::vector<TraceNode> trace{
      {.id = 7, .stage = "hlo", .op = "dot", .outputs = {narrow}},
      {.id = 9, .stage = "hlo", .op = "convert", .from = {7}, .inputs = {narrow}, .outputs = {wide}},
      {.id = 11, .stage = "jaxpr", .op = "dot_general", .outputs = {narrow}}};
  Cast up{.from = "bfloat16",
          .to = "float32",
          .shape = {},
          .under = "dot",
          .stage = "hlo",
          .redundant = true,
          .node = 9};
  const std::string text = DrawOpTree(trace, std::vector<Cast>{up}, {.console = {}, .stages = {"hlo"}});
  EXPECT_EQ(text,
            "    jaxpr          1 node, 0 conversions\n"
            "    hlo            2 nodes, 1 conversion\n"
            "        %7 = dot  bf16[]\n"
            "    >   %9 = convert(%7)  f32[]   bfloat16 to float32, changes no value\n");
}

TEST(OpTree, WhatOthersWroteIsMadeSafe) {
  std::vector<TraceNode> trace{{.id = 0, .stage = "hlo", .op = "a\x1b[2Jb"}};
  const std::string text = DrawOpTree(trace, {}, {.console = {}, .stages = {"hlo"}});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace ulpscope
