// Graph against execution: what the stages of a trace say is rounded, beside what the numbers prove.
//
// A stage predicts a rounding point where it computes or converts to a narrow format and widens the result
// again. When the numbers prove that nothing so narrow happened, the rounding vanished between that stage and
// the next one, or the execution. The other way round: when they prove a rounding to a format that no stage
// of the trace names anywhere, it appeared behind the last stage. A compiler that drops a pair of casts does
// the first, a library that rounds operands inside a kernel the second.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "harness/model/run_report.h"

namespace ulpscope {

struct GraphGap {
  enum class Kind { kVanished, kAppeared };
  /// What makes the narrow number in the graph: a conversion of a wider one, or an op that gives its result so.
  enum class By { kCast, kOp };
  Kind kind = Kind::kVanished;
  By by = By::kCast;   ///< of kVanished
  std::string value;   ///< the first observed value in program order that shows it
  std::string format;  ///< the narrow format: a dtype name; of kAppeared, what is rounded too ("a rounding to
      ///< bfloat16", "bfloat16 operands"), with "a rounding, likely" in front where the numbers prove no more
  std::string from;   ///< the last stage that shows the rounding; of kAppeared, the last stage
  std::string to;     ///< the next stage of the trace, or "execution"
  std::string basis;  ///< "proved" when every proved model says so, "likely" when only the likely ones do
};

/// Looks for rounding points of one size in one stage, where every proved model of every observed value of
/// that size (the last one of the program among them) rounds to nothing so narrow. A dead rounding
/// point off the path of what is observed would be taken for one that vanished. Where `trace` has no nodes for a cast, a pair of
/// casts of one size counts.
std::optional<GraphGap> FindVanishedRounding(const CaseResult& result, std::span<const TraceNode> trace);

/// Looks for a value whose every proved model rounds below the value's own dtype, to a format that no node
/// and no cast of any stage names. Without nodes nothing is said, and neither is it where some part ran eagerly
/// that no stage shows.
std::optional<GraphGap> FindAppearedRounding(const CaseResult& result, std::span<const TraceNode> trace);

}  // namespace ulpscope
