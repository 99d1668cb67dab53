// The op tree of a trace as text: nodes nested as they ran, with dtypes and shapes, conversions marked.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/trace.h"
#include "reports/console.h"

namespace ulpscope {

struct OpTreeOptions {
  ConsoleOptions console;
  std::vector<std::string> stages = {};  ///< drawn in full; the others take one line each
};

/// The last stage that is a stack's own and no adapter's glue; the first one of an empty trace.
std::string_view LastStage(std::span<const TraceNode> trace);

/// One block for each stage, in the order of kTraceStages. Lines of conversions begin with ">". Steps of the dispatcher
/// that only show or allocate memory are left out, except with verbosity kVerbose, which also draws every stage.
/// Graphs, whose nodes are flat, number them and list each node's operands.
///
///     dispatch   10 nodes, 1 conversion
///         aten::linear (bf16[22,44], f32[66,44]) -> bf16[22,66]  158 us
///           aten::to (f32[66,44]) -> bf16[66,44]  33 us
///     >       aten::copy_ (bf16[66,44], f32[66,44]) -> bf16[66,44]  5.8 us   float32 to bfloat16
std::string DrawOpTree(std::span<const TraceNode> trace, std::span<const Cast> casts,
                       const OpTreeOptions& options);

}  // namespace ulpscope
