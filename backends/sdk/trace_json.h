// Contents of a trace as JSON, for the wire and for run folders.
#pragma once

#include "backends/sdk/wire.h"
#include "harness/words/trace.h"

namespace ulpscope::sdk {

/// Without `redundant`, which an adapter does not decide.
Json ToJson(const Cast& cast);
Json ToJson(const TraceNode& node);

}  // namespace ulpscope::sdk
