// Functions at exact binary numbers, enclosed: the building blocks for images of enclosures (exact.h has the arithmetic
// and its bounds).
#pragma once

#include <cstdint>

#include "oracles/exact/real.h"
#include "oracles/plan.h"

namespace ulpscope::points {

/// exp of 2^15 and more is beyond every format.
constexpr int64_t kSaturation = 15;

/// low <= f(x) <= high.
struct Enclosure {
  Dyadic low, high;
};

enum class Wave { kSin, kCos };

inline Dyadic Whole(int64_t value) { return {.m = value, .e = 0}; }
/// floor(log2 |x|); x is not zero.
int64_t Exponent(const Dyadic& x);
double Approximate(const Dyadic& x);
/// Truncated to `precision` bits, outwards.
Enclosure Outward(const Enclosure& a, int64_t precision);
Real Reals(const Enclosure& a);

/// f at a point of its domain.
Enclosure At(NodeKind kind, const Dyadic& x, int64_t precision);
Enclosure WaveAt(Wave wave, const Dyadic& x, int64_t precision);
Enclosure AtanAt(const Dyadic& x, int64_t precision);
Real PiReal(int64_t precision);
Real Ln2Real(int64_t precision);

}  // namespace ulpscope::points
