// The trace of what really ran: every op that the dispatcher saw, nested as it was called, with dtypes,
// shapes and time; and every dtype conversion among them.
//
// at::RecordFunction calls back around every op. A conversion is an aten::copy_ with two dtypes (aten::to and
// _to_copy around it also run without converting). Its parent is the nearest enclosing node that is no part
// of the conversion itself: `aten::linear` for a cast that autocast put in, `ToCopyBackward0` for one that a
// backward formula requests, `autograd::engine::evaluate_function: XBackward0` for one that the autograd
// engine added by itself to make a gradient fit its input.
//
// A 0-dim operand may show a cast that the kernel ignores (mul takes a scalar unrounded): a trace proves no
// rounding. The first call of an op sets its kernel up, which costs more than it does afterwards: durations
// mean something in a second run only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/sdk/adapter.h"

namespace ulpscope::torch_backend {

/// Nodes (stage dispatch) in the order in which they began; ids are places in that order.
struct RecordedOps {
  std::vector<TraceNode> nodes;
  std::vector<Cast> casts = {};
};

/// Records from construction to Take or destruction, on every thread of the process. One at a time.
class OpTrace {
 public:
  OpTrace();
  ~OpTrace();
  OpTrace(const OpTrace&) = delete;
  OpTrace& operator=(const OpTrace&) = delete;

  /// Stops recording and gives what was recorded.
  RecordedOps Take();
  /// Nodes that could not be read: the trace is incomplete when this is not 0.
  int64_t lost() const;

 private:
  void Stop();
  uint64_t handle_ = 0;
  bool recording_ = true;
};

/// Gives the durations of `again`, further recordings of the same program, to `first`: the median of each. False, and nothing is
/// changed, when they are not all the same ops in the same order.
bool TakeDurations(const std::vector<RecordedOps>& again, RecordedOps* first);

/// Puts nodes and casts behind those of `reply`, with ids of their own.
void Append(RecordedOps ops, sdk::RunReply* reply);

/// Names what the adapter itself does on behalf of a step ("set_data") as the enclosing node.
class TraceLabel {
 public:
  explicit TraceLabel(std::string name);
  ~TraceLabel();
  TraceLabel(const TraceLabel&) = delete;
  TraceLabel& operator=(const TraceLabel&) = delete;

 private:
  bool recorded_;
};

/// Nothing that runs while one of these lives is recorded.
class TracePause {
 public:
  TracePause();
  ~TracePause();
  TracePause(const TracePause&) = delete;
  TracePause& operator=(const TracePause&) = delete;
};

}  // namespace ulpscope::torch_backend
