// Sums over pairs of doubles, as ledgers and budgets add them.
#pragma once

#include "harness/num/float_format.h"

namespace ulpscope {

/// 64 bits of the pair.
inline long double ValueOf(const TwoDoubles& pair) { return static_cast<long double>(pair.hi) + pair.lo; }

}  // namespace ulpscope
