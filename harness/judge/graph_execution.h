// Graph against execution: the roundings that the stages of a trace show, compared with what the numbers prove.
//
// A stage predicts a rounding point if it computes in or converts to a narrow format and widens the result again. If
// the numbers prove that no such rounding happened, it vanished between that stage and the next one, or the execution.
// If they prove a rounding to a format that no stage of the trace names, it appeared after the last stage. A compiler
// that drops a pair of casts causes the first, a library that rounds operands inside a kernel the second.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "harness/model/run_report.h"

namespace ulpscope {

struct GraphGap {
  enum class Kind { kVanished, kAppeared };
  /// The source of the narrow number in the graph: a conversion of a wider one, or an op whose result is narrow.
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

/// Looks for a stage whose rounding points of one size contradict the proved models: every proved model of every
/// observed value of that size (the program's last value among them) rounds to nothing so narrow. A dead rounding
/// point, which no observed value depends on, would seem to vanish. Without nodes for a cast, pairs of casts count.
std::optional<GraphGap> FindVanishedRounding(const CaseResult& result, std::span<const TraceNode> trace);

/// Looks for a value whose every proved model rounds below the value's own dtype, to a format that no node and no cast
/// of any stage names. Nothing is reported without nodes, or if some part ran eagerly without showing in any stage.
std::optional<GraphGap> FindAppearedRounding(const CaseResult& result, std::span<const TraceNode> trace);

}  // namespace ulpscope
