// The words of a trace: the stages that a stack may show, and the kinds of node that adapters distinguish.
//
// An op is spelled as its stage spells it, and no two stacks agree. The adapter gives the properties that the
// harness needs of a node (does it compute, is it a kernel, a matrix product) as its kind, so that the
// spelling is text to show and nothing else.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace ulpscope {

/// From the program towards the machine; then the steps that an adapter computes itself, no stage of the
/// library.
inline constexpr std::array<std::string_view, 16> kTraceStages{
    "dispatch",      "torchscript", "dynamo",  "aot_joint", "aot_forward", "aot_backward",
    "post_grad",     "generated",   "lazy_ir", "jaxpr",     "stablehlo",   "hlo",
    "hlo_optimized", "kernel",      "profile", "glue"};

/// Place in kTraceStages; its size for a name that is none.
constexpr size_t StageRank(std::string_view stage) {
  return static_cast<size_t>(std::ranges::find(kTraceStages, stage) - kTraceStages.begin());
}

enum class TraceKind {
  kCompute,  ///< computes elements, or encloses what does (a call, a graph's root); also whatever is not
             ///< known
  kConvert,  ///< gives its operand's elements in another dtype
  kView,     ///< shows or allocates memory and touches no element
  kMove,     ///< copies, rearranges or hands on elements as they are
  kProduct,  ///< a matrix product
  kFusion,   ///< one kernel that encloses its parts, of which the last gives its result
  kKernel,   ///< one kernel that encloses its parts, which store its results
  kInput,    ///< a parameter or a constant
};

/// As adapters write them, in the order of TraceKind.
inline constexpr std::array<std::string_view, 8> kTraceKinds{"compute", "convert", "view",   "move",
                                                             "product", "fusion",  "kernel", "input"};

constexpr std::string_view Name(TraceKind kind) { return kTraceKinds[static_cast<size_t>(kind)]; }

constexpr std::optional<TraceKind> ParseTraceKind(std::string_view name) {
  const auto* const found = std::ranges::find(kTraceKinds, name);
  if (found == kTraceKinds.end()) return std::nullopt;
  return static_cast<TraceKind>(found - kTraceKinds.begin());
}

/// False for a node whose elements are those of what it reads, in whatever dtype and place, or came in.
constexpr bool Computes(TraceKind kind) {
  using enum TraceKind;
  return kind == kCompute || kind == kProduct || kind == kFusion || kind == kKernel;
}

}  // namespace ulpscope
