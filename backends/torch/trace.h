// The cast trace of what really ran: every dtype conversion the dispatcher saw, and under which op it stood.
//
// at::RecordFunction calls back around every op. A conversion is an aten::copy_ with two dtypes (aten::to and
// _to_copy around it also run without converting). What it stands under is the nearest enclosing node that is
// no part of the conversion itself: `aten::linear` for a cast that autocast put in, `ToCopyBackward0` for one
// that a backward formula asks for, `autograd::engine::evaluate_function: XBackward0` for one that the
// autograd engine added by itself to make a gradient fit its input. A cast up whose result is cast straight
// back down changes no value: both are redundant.
//
// A 0-dim operand may show a cast that the kernel ignores (mul takes a scalar unrounded): a trace proves no
// rounding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/sdk/adapter.h"

namespace ulpscope::torch_backend {

/// Records from construction to Take or destruction, on every thread of the process. One at a time.
class CastTrace {
 public:
  CastTrace();
  ~CastTrace();
  CastTrace(const CastTrace&) = delete;
  CastTrace& operator=(const CastTrace&) = delete;

  /// Stops recording and gives the casts in the order in which they began.
  std::vector<sdk::CastRecord> Take();
  /// Nodes that could not be read: the trace is incomplete when this is not 0.
  int64_t lost() const;
  /// Ops seen, so that an empty list of casts can be told from a trace that saw nothing.
  int64_t nodes() const;

 private:
  void Stop();
  uint64_t handle_ = 0;
  bool recording_ = true;
};

/// Names what the adapter itself does on behalf of a step ("set_data") as the enclosing node.
class TraceLabel {
 public:
  explicit TraceLabel(std::string name);
  ~TraceLabel();
  TraceLabel(const TraceLabel&) = delete;
  TraceLabel& operator=(const TraceLabel&) = delete;
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
