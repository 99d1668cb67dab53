// Arithmetic of intervals of doubles, rounded outwards.
#pragma once

#include <algorithm>
#include <cmath>

#include "harness/num/error_free.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"
#include "oracles/functions/enclose.h"

namespace ulpscope {

inline double AddDown(double a, double b) {
  const TwoDoubles sum = TwoSum(a, b);
  return std::isfinite(sum.hi) && sum.lo < 0 ? Down(sum.hi) : sum.hi;
}
inline double AddUp(double a, double b) {
  const TwoDoubles sum = TwoSum(a, b);
  return std::isfinite(sum.hi) && sum.lo > 0 ? Up(sum.hi) : sum.hi;
}

/// fma gives the rounding error of a product exactly above 2^-969; below, one step outwards always covers it.
inline double MulDown(double a, double b) {
  const double p = a * b;
  if (p == 0 && (a == 0 || b == 0)) return 0;
  if (!std::isfinite(p)) return p;
  return std::fabs(p) < 0x1p-960 || std::fma(a, b, -p) < 0 ? Down(p) : p;
}
inline double MulUp(double a, double b) {
  const double p = a * b;
  if (p == 0 && (a == 0 || b == 0)) return 0;
  if (!std::isfinite(p)) return p;
  return std::fabs(p) < 0x1p-960 || std::fma(a, b, -p) > 0 ? Up(p) : p;
}

inline bool HasNan(Interval a) { return std::isnan(a.lo) || std::isnan(a.hi); }

inline Interval Multiply(Interval a, Interval b) {
  if (HasNan(a) || HasNan(b)) return kEverything;
  if (a.lo == a.hi && b.lo == b.hi) return {.lo = MulDown(a.lo, b.lo), .hi = MulUp(a.lo, b.lo)};
  const Interval result{
      .lo = std::min({MulDown(a.lo, b.lo), MulDown(a.lo, b.hi), MulDown(a.hi, b.lo), MulDown(a.hi, b.hi)}),
      .hi = std::max({MulUp(a.lo, b.lo), MulUp(a.lo, b.hi), MulUp(a.hi, b.lo), MulUp(a.hi, b.hi)})};
  return HasNan(result) ? kEverything : result;
}

inline Interval Divide(Interval a, Interval b) {
  if (HasNan(a) || HasNan(b) || (b.lo <= 0 && b.hi >= 0)) return kEverything;
  double lo = kInf, hi = -kInf;
  for (const double x : {a.lo, a.hi}) {
    for (const double y : {b.lo, b.hi}) {
      const double q = x / y;
      const double rest = std::fma(-q, y, x);  // sign of x - q y, exact up to underflow
      const bool exact = rest == 0 && std::fabs(q) > 0x1p-960;
      lo = std::min(lo, exact || q == 0 ? q : Down(q));
      hi = std::max(hi, exact || q == 0 ? q : Up(q));
    }
  }
  return {.lo = lo, .hi = hi};
}

inline Interval SquareRoot(Interval a) {
  if (HasNan(a) || a.hi < 0) return kEverything;
  const double low = a.lo <= 0 ? 0 : std::sqrt(a.lo);
  const double high = std::sqrt(a.hi);
  return {.lo = low == 0 || std::fma(low, low, -a.lo) == 0 ? low : Down(low),
          .hi = std::fma(high, high, -a.hi) == 0 ? high : Up(high)};
}

inline double Magnitude(Interval a) { return std::max(std::fabs(a.lo), std::fabs(a.hi)); }

/// An infinity or a NaN for certain. A sum that takes one in is never finite again.
inline bool IsNotFinite(Interval a) { return HasNan(a) || (a.lo == a.hi && !std::isfinite(a.lo)); }

/// The neighbours of [a.lo, a.hi] in a format.
inline Interval Outwards(const FloatFormat& format, Interval a) {
  const auto neighbour = [&](double value, double direction) {
    const double inwards = RoundTo(value, format, Rounding::kTowardZero);
    if (inwards == value || std::signbit(value) != std::signbit(direction)) return inwards;
    return RoundTo(inwards + std::copysign(Ulp(inwards, format), direction), format);
  };
  return {.lo = neighbour(a.lo, -1), .hi = neighbour(a.hi, 1)};
}

inline Interval Rounded(const RoundSpec& spec, Interval a) {
  if (spec.faithful && !HasNan(a)) return Outwards(*spec.format, a);
  const double low = spec.Apply(a.lo);
  return {.lo = low, .hi = a.hi == a.lo ? low : spec.Apply(a.hi)};
}

}  // namespace ulpscope
