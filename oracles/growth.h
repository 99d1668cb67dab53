// How relative errors of many roundings grow: the basis of the bounds of sums.
#pragma once

#include <cmath>

namespace ulpscope {

/// (1 + unit)^n - 1, rounded upwards by a little.
inline double Growth(double unit, double n) {
  return n <= 0 ? 0 : std::expm1(n * std::log1p(unit)) * (1 + 0x1p-40);
}

}  // namespace ulpscope
