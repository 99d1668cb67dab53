// The trace: what a backend's own stages say that it computes, in one normal form for all stacks.
//
// A node is an operation as one stage names it: an op that the dispatcher called, a node of a graph, a kernel
// of generated code, an instruction of HLO. `parent` nests them (an op inside an op, an instruction inside a
// fusion, everything of one graph under a root node that names it), `from` joins them (which node made an
// operand). Stages are ordered from the program towards the machine; what a later stage says is nearer to
// what ran, and only the numbers say what did.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/tensor.h"

namespace ulpscope {

struct TraceTensor {
  std::string dtype;  ///< long name ("bfloat16"), or the stack's own where it is none of ours
  Shape shape;
  bool operator==(const TraceTensor&) const = default;
};

struct TraceNode {
  int64_t id = 0;
  int64_t parent = -1;  ///< the enclosing node; -1: none
  std::string stage;    ///< one of kTraceStages
  std::string op;
  std::vector<int64_t> from = {};  ///< nodes whose results this one reads, as far as the stage tells
  std::vector<TraceTensor> inputs = {}, outputs = {};
  std::optional<double> us = {};  ///< duration in microseconds, nested nodes included; volatile
  bool operator==(const TraceNode&) const = default;
};

/// From the program towards the machine; then the steps that an adapter computes itself, no stage of the
/// library.
inline constexpr std::array<std::string_view, 15> kTraceStages{
    "dispatch",     "torchscript", "dynamo",        "aot_joint", "aot_forward",
    "aot_backward", "post_grad",   "generated",     "lazy_ir",   "jaxpr",
    "stablehlo",    "hlo",         "hlo_optimized", "kernel",    "glue"};

/// Place in kTraceStages; its size for a name that is none.
size_t StageRank(std::string_view stage);

/// One dtype conversion that a trace shows.
struct Cast {
  std::string from, to;
  Shape shape;
  int64_t bytes = 0;  ///< of the result
  std::string under;  ///< the op or node it stands under
  std::string stage;  ///< one of kTraceStages
  bool redundant =
      false;  ///< half of a pair that changes no value: bfloat16 -> float32 -> bfloat16, nothing between
  int64_t node = -1;              ///< the TraceNode that converts; -1: the trace has none for it
  std::optional<double> us = {};  ///< its duration in microseconds; volatile
  bool operator==(const Cast&) const = default;
};

/// What the casts of one result cost at one stage. Bytes follow from dtypes and shapes alone; times are
/// measured.
struct CastCost {
  std::string stage;
  int64_t casts = 0;
  int64_t in_kernels =
      0;  ///< of them, inside a kernel that computes too: in registers, no memory of their own
  int64_t moved_bytes = 0;        ///< read and written by the others
  int64_t redundant_pairs = 0;    ///< undo a widening: no value changes
  int64_t redundant_bytes = 0;    ///< moved by those pairs
  int64_t extra_alive_bytes = 0;  ///< the tensors in the middle of those pairs
  /// The casts' time beside that of the op they are made for: the rest of the op that encloses them or, for
  /// casts that stand alone, the op that reads their result. Volatile.
  struct Share {
    std::string under;        ///< the enclosing op
    std::string before = {};  ///< the op that reads them; then `under` is what carries them out
    double casts_us = 0, op_us = 0;
  };
  std::vector<Share> shares = {};
};

/// True for ops that show, move or hand on elements and compute none, as the stacks spell them (namespaces
/// left out).
bool MovesOnly(std::string_view op);

/// One entry a stage, in the order of kTraceStages.
std::vector<CastCost> CostOfCasts(const std::vector<Cast>& casts, const std::vector<TraceNode>& trace);

/// Empty, or the first thing that breaks the form: an id twice, a parent or a source that is no node, a
/// parent that is its own ancestor, an unknown stage.
std::string TraceProblem(const std::vector<TraceNode>& trace, const std::vector<Cast>& casts);

}  // namespace ulpscope
