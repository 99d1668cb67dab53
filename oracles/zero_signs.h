// The signs of results that are exactly zero. A real number has none; IEEE 754 gives one to every sum, product and quotient.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracles/shared.h"

namespace ulpscope {

/// For each of `elements` of `node`: -1 or 1 if its exact value is zero and IEEE 754 gives that zero a sign in round to
/// nearest, whatever the order of its sums and the roundings of its steps; 0 otherwise: the value is not zero, or the
/// sign depends on how the op is computed (a maximum, a step inside a composite op, a sum of nothing but -0).
std::vector<int> ZeroSignsOf(Shared* shared, int node, std::span<const int64_t> elements);

}  // namespace ulpscope
