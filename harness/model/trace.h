// What a trace is held to, and what the casts in it cost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/words/trace.h"

namespace ulpscope {

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

/// One entry a stage, in the order of kTraceStages.
std::vector<CastCost> CostOfCasts(const std::vector<Cast>& casts, const std::vector<TraceNode>& trace);

/// Empty, or the first thing that breaks the form: an id twice, a parent or a source that is no node, a
/// parent that is its own ancestor, an unknown stage.
std::string TraceProblem(const std::vector<TraceNode>& trace, const std::vector<Cast>& casts);

}  // namespace ulpscope
