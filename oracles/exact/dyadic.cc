// Exact binary arithmetic and its directed conversions.
#include "oracles/exact/dyadic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "harness/base/check.h"

namespace ulpscope {

using boost::multiprecision::cpp_int;

namespace {

int64_t BitLength(const cpp_int& m) { return m.is_zero() ? 0 : static_cast<int64_t>(msb(abs(m))) + 1; }

/// m / 2^shift rounded towards `direction`.
cpp_int ShiftRight(const cpp_int& m, int64_t shift, Direction direction) {
  if (shift <= 0) return m << static_cast<unsigned>(-shift);
  const auto count = static_cast<unsigned>(shift);
  const cpp_int magnitude = abs(m);
  cpp_int quotient = magnitude >> count;
  const bool cut = (quotient << count) != magnitude;
  const bool away = m.sign() < 0 ? direction == Direction::kDown : direction == Direction::kUp;
  if (cut && away) ++quotient;
  return m.sign() < 0 ? cpp_int(-quotient) : quotient;
}

/// Nearest-even binary64 of `value`, gradual underflow included.
double Nearest(const Dyadic& value) {
  if (value.is_zero()) return 0;
  const cpp_int magnitude = abs(value.m);
  const int64_t length = BitLength(magnitude);
  const int64_t top = value.e + length - 1;
  if (top > 1024)
    return value.sign() < 0 ? -std::numeric_limits<double>::infinity()
                            : std::numeric_limits<double>::infinity();
  const int64_t quantum = std::max<int64_t>(top - 52, -1074);
  const int64_t shift = quantum - value.e;
  cpp_int quotient;
  if (shift <= 0) {
    quotient = magnitude << static_cast<unsigned>(-shift);
  } else {
    quotient = magnitude >> static_cast<unsigned>(shift);
    const cpp_int rest = magnitude - (quotient << static_cast<unsigned>(shift));
    const cpp_int half = cpp_int(1) << static_cast<unsigned>(shift - 1);
    if (rest > half || (rest == half && bit_test(quotient, 0))) ++quotient;
  }
  const double scaled = std::ldexp(quotient.convert_to<double>(), static_cast<int>(quantum));
  return value.sign() < 0 ? -scaled : scaled;
}

}  // namespace

Dyadic Dyadic::From(double value) {
  ULPSCOPE_CHECK(std::isfinite(value), "a dyadic number is finite");
  if (value == 0) return {};
  int exponent;
  const double fraction = std::frexp(value, &exponent);
  auto integer = static_cast<int64_t>(std::ldexp(fraction, 53));
  exponent -= 53;
  const int zeros = std::countr_zero(static_cast<uint64_t>(integer));
  integer /= int64_t{1} << zeros;
  return {.m = integer, .e = exponent + zeros};
}

int64_t Dyadic::bits() const { return BitLength(m); }

Dyadic operator+(const Dyadic& a, const Dyadic& b) {
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  if (a.e >= b.e) return {.m = (a.m << static_cast<unsigned>(a.e - b.e)) + b.m, .e = b.e};
  return {.m = a.m + (b.m << static_cast<unsigned>(b.e - a.e)), .e = a.e};
}

Dyadic Negate(Dyadic a) {
  a.m = -a.m;
  return a;
}

Dyadic operator-(const Dyadic& a, const Dyadic& b) { return a + Negate(b); }

Dyadic operator*(const Dyadic& a, const Dyadic& b) {
  if (a.is_zero() || b.is_zero()) return {};
  return {.m = a.m * b.m, .e = a.e + b.e};
}

int Compare(const Dyadic& a, const Dyadic& b) { return (a - b).sign(); }

Dyadic Limit(const Dyadic& value, int64_t bits, Direction direction) {
  const int64_t excess = value.bits() - bits;
  if (excess <= 0) return value;
  return {.m = ShiftRight(value.m, excess, direction), .e = value.e + excess};
}

Dyadic Divide(const Dyadic& a, const Dyadic& b, int64_t bits, Direction direction) {
  ULPSCOPE_CHECK(!b.is_zero(), "division by an exact zero");
  if (a.is_zero()) return {};
  const int64_t shift = std::max<int64_t>(0, bits + b.bits() - a.bits() + 1);
  const cpp_int numerator = abs(a.m) << static_cast<unsigned>(shift);
  const cpp_int denominator = abs(b.m);
  cpp_int quotient, rest;
  divide_qr(numerator, denominator, quotient, rest);
  const bool negative = (a.sign() < 0) != (b.sign() < 0);
  const bool away = negative ? direction == Direction::kDown : direction == Direction::kUp;
  if (!rest.is_zero() && away) ++quotient;
  return {.m = negative ? cpp_int(-quotient) : quotient, .e = a.e - b.e - shift};
}

Dyadic Sqrt(const Dyadic& a, int64_t bits, Direction direction) {
  ULPSCOPE_CHECK(a.sign() >= 0, "square root of a negative exact number");
  if (a.is_zero()) return {};
  int64_t shift = std::max<int64_t>(0, 2 * bits - a.bits() + 2);
  if ((a.e - shift) % 2 != 0) ++shift;
  const cpp_int scaled = a.m << static_cast<unsigned>(shift);
  cpp_int rest;
  cpp_int root = boost::multiprecision::sqrt(scaled, rest);
  if (!rest.is_zero() && direction == Direction::kUp) ++root;
  return {.m = root, .e = (a.e - shift) / 2};
}

TwoDoubles ToTwoDoubles(const Dyadic& value, int* rest) {
  const double hi = Nearest(value);
  if (!std::isfinite(hi)) {
    *rest = 0;
    return {.hi = hi, .lo = 0};
  }
  const Dyadic below = value - Dyadic::From(hi);
  const double lo = Nearest(below);
  *rest = (below - Dyadic::From(lo)).sign();
  return {.hi = hi, .lo = lo};
}

double RoundTo(const Dyadic& value, const FloatFormat& format, Rounding rounding) {
  int rest = 0;
  TwoDoubles two = ToTwoDoubles(value, &rest);
  // A tail below binary64's range still decides a tie.
  if (two.lo == 0 && rest != 0) two.lo = std::copysign(std::numeric_limits<double>::denorm_min(), rest);
  return RoundTo(two, format, rounding);
}

}  // namespace ulpscope
