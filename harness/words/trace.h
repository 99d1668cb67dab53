// The trace: the computation as a backend's own stages show it, in one normal form for all stacks.
//
// A node is an operation as one stage names it: an op that the dispatcher called, a node of a graph, a kernel
// of generated code, an instruction of HLO. `parent` nests them (an op inside an op, an instruction inside a
// fusion, everything of one graph under a root node that names it), `from` joins them (which node made an
// operand). Stages are ordered from the program towards the machine; a later stage is nearer to what ran, and
// only the numbers show what did.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/num/tensor_data.h"
#include "harness/words/trace_words.h"

namespace ulpscope {

struct TraceTensor {
  std::string dtype;  ///< long name ("bfloat16"), or the stack's own where it is none of ours
  Shape shape = {};
  bool operator==(const TraceTensor&) const = default;
};

struct TraceNode {
  int64_t id = 0;
  int64_t parent = -1;  ///< the enclosing node; -1: none
  std::string stage;    ///< one of kTraceStages
  TraceKind kind = TraceKind::kCompute;
  std::string op;
  std::vector<int64_t> from = {};  ///< nodes whose results this one reads, as far as the stage tells
  std::vector<TraceTensor> inputs = {}, outputs = {};
  std::optional<double> us = {};  ///< duration in microseconds, nested nodes included; volatile
  bool operator==(const TraceNode&) const = default;
};

/// One dtype conversion that a trace shows.
struct Cast {
  std::string from, to;
  Shape shape = {};
  int64_t bytes = 0;  ///< of the result
  std::string under;  ///< the op or node it stands under
  std::string stage;  ///< one of kTraceStages
  /// Half of a pair that changes no value (bfloat16 -> float32 -> bfloat16, nothing between); no adapter
  /// decides it: the harness finds it in the trace.
  bool redundant = false;
  int64_t node = -1;              ///< the TraceNode that converts; -1: the trace has none for it
  std::optional<double> us = {};  ///< its duration in microseconds; volatile
  bool operator==(const Cast&) const = default;
};

}  // namespace ulpscope
