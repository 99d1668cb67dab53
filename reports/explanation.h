// The parts of a derivation that describe the case instead of the result.
#pragma once

#include <string>
#include <vector>

#include "harness/model/run_report.h"

namespace ulpscope {

struct Explanation {
  std::string about, source;              ///< of the case
  std::string tensors = {};               ///< of the case, in one line
  std::vector<std::string> program = {};  ///< its steps, in the words of a case file
  std::vector<std::string> origins =
      {};  ///< one for each of `program`: "at m.layers.0, model.py:7"; "" if unknown
  std::vector<TraceNode> trace = {};  ///< of the result; may be empty

  std::string OriginOf(size_t step) const { return step < origins.size() ? origins[step] : ""; }
};

/// The most lines of a derivation that is not verbose.
inline constexpr size_t kMostExplainedLines = 40;

}  // namespace ulpscope
