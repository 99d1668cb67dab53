// The certificates of the fast path, tried on this machine before the first use.
#pragma once

#include <string>

#include "oracles/fast/product.h"

namespace ulpscope::fast {

/// Products with known traps (peeled elements, exact cancellation, ties, subnormals, infinities) by every tier,
/// compared with the superaccumulator element by element. Returns the failures; empty if there are none.
std::string SelfTest(const Options& options);

}  // namespace ulpscope::fast
