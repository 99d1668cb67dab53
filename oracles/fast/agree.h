// When two references of the same element can both be true.
#pragma once

#include <string>

#include "harness/model/reference.h"

namespace ulpscope::fast {

/// hi must have the same bits (any NaN equals any NaN); lo too, together with kind and err, if `fast` claims to be
/// exact or wide; if it claims a bound, the two must lie within both bounds.
bool Agree(const Reference& fast, const Reference& truth);

/// "hi 0x1p+0 (1), lo ..., err ..., EXACT"
std::string Describe(const Reference& reference);

}  // namespace ulpscope::fast
