// Expanding a case's program, step by step, into a plan.
#pragma once

#include "oracles/plan.h"

namespace ulpscope {

/// Ops that the oracle does not know become gaps of the values that depend on them.
Result<Plan> Lower(const Case& c);

}  // namespace ulpscope
