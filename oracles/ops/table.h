// One function per op expansion: Lower<lowering> for every row of harness/words/ops.def.
#pragma once

#include "oracles/lower.h"

namespace ulpscope {

#define ULPSCOPE_OP(word, lowering, ...) int Lower##lowering(Lowering& low, const OpCall& call);
#include "harness/words/ops.def"
#undef ULPSCOPE_OP

}  // namespace ulpscope
