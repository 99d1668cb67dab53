// Sums of a few doubles, exactly: renormalisation of expansions (Shewchuk, "Adaptive Precision Floating-Point
// Arithmetic", 1997), ended by a proof that the leading component is the sum rounded to binary64.
#pragma once

#include <optional>
#include <span>

#include "harness/model/reference.h"

namespace ulpscope::fast {

/// The reference of the exact sum of `parts` (at most 12, finite, each a multiple of 2^-1074 and below 2^1000
/// in magnitude) plus an error of at most `err`. Nothing where err, or a tie beyond binary64's sight, leaves
/// the rounding open. With err == 0 the kind is EXACT or WIDE, otherwise CERTIFIED.
std::optional<Reference> RoundSum(std::span<const double> parts, double err);

}  // namespace ulpscope::fast
