// Casts that change no value, found in a trace.
#pragma once

#include <vector>

#include "harness/words/trace.h"

namespace ulpscope {

/// Sets `redundant` at both halves of each pair that undoes itself: a widening whose result reaches, by way
/// of nodes that show or move it and no others, a conversion back. The conversion back changes no value
/// wherever it stands; the widening is for nothing only where all that reads it converts back. float32 ->
/// bfloat16 -> float32 is no such pair: it rounds. A cast that the trace has no node for belongs to none.
void MarkRedundantCasts(const std::vector<TraceNode>& trace, std::vector<Cast>* casts);

}  // namespace ulpscope
