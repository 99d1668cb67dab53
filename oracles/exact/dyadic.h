// Dyadic: an exact binary number m * 2^e over Boost.Multiprecision's cpp_int, and its directed conversions.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>

#include "harness/num/float_format.h"

namespace ulpscope {

/// m * 2^e, exactly. Addition, subtraction and multiplication never round.
struct Dyadic {
  boost::multiprecision::cpp_int m = 0;
  int64_t e = 0;

  static Dyadic From(double value);  ///< value finite
  bool is_zero() const { return m.is_zero(); }
  int sign() const { return m.sign(); }
  /// Number of significand bits, 0 for zero.
  int64_t bits() const;
};

Dyadic operator+(const Dyadic& a, const Dyadic& b);
Dyadic operator-(const Dyadic& a, const Dyadic& b);
Dyadic operator*(const Dyadic& a, const Dyadic& b);
Dyadic Negate(Dyadic a);
/// -1, 0, 1
int Compare(const Dyadic& a, const Dyadic& b);

enum class Direction { kDown, kUp };

/// `value` cut to at most `bits` significand bits towards minus or plus infinity.
Dyadic Limit(const Dyadic& value, int64_t bits, Direction direction);
/// a / b to `bits` bits, rounded in `direction`; b is not zero.
Dyadic Divide(const Dyadic& a, const Dyadic& b, int64_t bits, Direction direction);
/// sqrt(a) to `bits` bits, rounded in `direction`; a >= 0.
Dyadic Sqrt(const Dyadic& a, int64_t bits, Direction direction);

/// hi = RN53(value), lo = RN53(value - hi). `rest` receives the sign of value - hi - lo.
TwoDoubles ToTwoDoubles(const Dyadic& value, int* rest);
/// Rounds once into `format`.
double RoundTo(const Dyadic& value, const FloatFormat& format, Rounding rounding = Rounding::kNearestEven);

}  // namespace ulpscope
