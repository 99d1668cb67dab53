// What a trace shows, as the wire has it and as run folders keep it.
#pragma once

#include "backends/sdk/wire.h"
#include "harness/words/trace.h"

namespace ulpscope::sdk {

/// Without `redundant`, which is not an adapter's to say.
Json ToJson(const Cast& cast);
Json ToJson(const TraceNode& node);

}  // namespace ulpscope::sdk
