// Error-free transformations: sums and products of doubles with their rounding error, and arithmetic on
// pairs.
//
// TwoSum is Knuth's (The Art of Computer Programming, volume 2, 4.2.2); TwoProduct uses fma. Both are exact
// in round to nearest without overflow, TwoProduct above 2^-969 (below it the error term can be subnormal).
// A pair that is zero has the sign that IEEE 754 gives to the sum, product or quotient; the tail of such a pair is +0.
#pragma once

#include <cmath>

#include "harness/num/float_format.h"

namespace ulpscope {

inline TwoDoubles TwoSum(double a, double b) {
  const double s = a + b;
  const double bb = s - a;
  return {.hi = s, .lo = (a - (s - bb)) + (b - bb)};
}

inline TwoDoubles TwoProduct(double a, double b) {
  const double p = a * b;
  return {.hi = p, .lo = std::fma(a, b, -p)};
}

/// hi + lo of the sum of a double and a pair, to about 2^-105 of its magnitude; exact when the pair's tail is
/// zero.
inline TwoDoubles AddExactly(double a, TwoDoubles b) {
  TwoDoubles sum = TwoSum(a, b.hi);
  if (b.lo == 0) return sum;
  const TwoDoubles tail = TwoSum(sum.lo, b.lo);
  TwoDoubles result = TwoSum(sum.hi, tail.hi);
  result.lo += tail.lo;
  return TwoSum(result.hi, result.lo);
}

inline TwoDoubles Add(TwoDoubles a, TwoDoubles b) {
  if (!std::isfinite(a.hi) || !std::isfinite(b.hi)) return {.hi = a.hi + b.hi, .lo = 0};
  TwoDoubles s = TwoSum(a.hi, b.hi);
  // Further additions would make +0 of (-0) + (-0).
  if (s.hi == 0 && a.lo == 0 && b.lo == 0) return {.hi = s.hi, .lo = 0};
  TwoDoubles t = TwoSum(a.lo, b.lo);
  s.lo += t.hi;
  s = TwoSum(s.hi, s.lo);
  s.lo += t.lo;
  return TwoSum(s.hi, s.lo);
}

inline TwoDoubles Negate(TwoDoubles a) { return {.hi = -a.hi, .lo = a.lo == 0 ? 0 : -a.lo}; }

inline TwoDoubles Multiply(TwoDoubles a, TwoDoubles b) {
  const double plain = a.hi * b.hi;
  if (!std::isfinite(plain) || plain == 0) return {.hi = plain, .lo = 0};
  TwoDoubles p = TwoProduct(a.hi, b.hi);
  p.lo += a.hi * b.lo + a.lo * b.hi;
  return TwoSum(p.hi, p.lo);
}

inline TwoDoubles Divide(TwoDoubles a, TwoDoubles b) {
  const double q1 = a.hi / b.hi;
  if (!std::isfinite(q1) || q1 == 0) return {.hi = q1, .lo = 0};
  const TwoDoubles r1 = Add(a, Negate(Multiply(b, {.hi = q1, .lo = 0})));
  const double q2 = r1.hi / b.hi;
  const TwoDoubles r2 = Add(r1, Negate(Multiply(b, {.hi = q2, .lo = 0})));
  const double q3 = r2.hi / b.hi;
  return Add(TwoSum(q1, q2), {.hi = q3, .lo = 0});
}

inline TwoDoubles SquareRoot(TwoDoubles a) {
  const double root = std::sqrt(a.hi);
  if (!std::isfinite(root) || root == 0) return {.hi = root, .lo = 0};
  const TwoDoubles rest = Add(a, Negate(TwoProduct(root, root)));
  const TwoDoubles once = TwoSum(root, rest.hi / (2 * root));
  const TwoDoubles again = Add(a, Negate(Multiply(once, once)));
  return Add(once, {.hi = again.hi / (2 * root), .lo = 0});
}

}  // namespace ulpscope
