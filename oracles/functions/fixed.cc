// Series with counted errors.
#include "oracles/functions/fixed.h"

#include <cstdlib>

namespace ulpscope::fixed {
namespace {

unsigned Count(int64_t bits) { return static_cast<unsigned>(bits); }

/// arctan (sign -1) or artanh (sign 1) of 1/n in units: each term errs by less than two units.
Integer InverseTangent(int64_t n, int sign, int64_t w) {
  Integer power = (Integer(1) << Count(w)) / n, sum = 0;
  const Integer square = Integer(n) * n;
  for (int64_t k = 0; !power.is_zero(); ++k) {
    const Integer term = power / (2 * k + 1);
    if (sign < 0 && k % 2 == 1) {
      sum -= term;
    } else {
      sum += term;
    }
    power /= square;
  }
  return sum;
}

/// A constant at the widest w requested so far; narrower ones are cut from it. 64 guard bits keep it within
/// one unit, the cut adds one more.
template <Integer (*kCompute)(int64_t)>
Integer Cached(int64_t w) {
  thread_local Integer value;
  thread_local int64_t width = -1;
  if (width < w) {
    constexpr int64_t kGuard = 64;
    value = kCompute(w + kGuard) >> Count(kGuard);
    width = w;
  }
  return value >> Count(width - w);
}

/// Machin (1706).
Integer ComputePi(int64_t w) { return 16 * InverseTangent(5, -1, w) - 4 * InverseTangent(239, -1, w); }
Integer ComputeLn2(int64_t w) {
  return 18 * InverseTangent(26, 1, w) - 2 * InverseTangent(4801, 1, w) + 8 * InverseTangent(8749, 1, w);
}

}  // namespace

Integer ShiftRight(const Integer& a, int64_t count) {
  if (count <= 0) return a << Count(-count);
  return a.sign() < 0 ? Integer(-(Integer(-a) >> Count(count))) : Integer(a >> Count(count));
}

Integer Multiply(const Integer& a, const Integer& b, int64_t w) { return ShiftRight(a * b, w); }

Integer Of(const Dyadic& value, int64_t w) { return ShiftRight(value.m, -(value.e + w)); }

int64_t BitLength(const Integer& a) { return a.is_zero() ? 0 : static_cast<int64_t>(msb(abs(a))) + 1; }

Integer Pi(int64_t w) { return Cached<ComputePi>(w); }
Integer Ln2(int64_t w) { return Cached<ComputeLn2>(w); }

/// exp(r) = exp(r / 2^s)^(2^s). With |r / 2^s| < 2^-8 the terms t = t r / n err by e <= e/256 + 2 < 3 units,
/// n <= w/8 of them, the remainder is below one unit; each squaring at most doubles the error, times 1.7 at
/// most over all of them, and adds one unit. s <= 8 + w/128 <= 47: below 2^47 (3 w/8 + 50) 2 < 2^60.
Integer Exp(const Integer& r, int64_t w) {
  const int64_t s = 8 + w / 128;
  const Integer small = ShiftRight(r, s);
  Integer term = Integer(1) << Count(w), sum = term;
  for (int64_t n = 1; !term.is_zero(); ++n) {
    term = Multiply(term, small, w) / n;
    sum += term;
  }
  for (int64_t i = 0; i < s; ++i) sum = Multiply(sum, sum, w);
  return sum;
}

/// Each power errs by less than 1.1 units, each quotient by one; z^2 <= 0.04, so there are fewer than w/4
/// terms.
Integer TwiceAtanh(const Integer& z, int64_t w) {
  const Integer square = Multiply(z, z, w);
  Integer power = z, sum = z;
  for (int64_t k = 1; !power.is_zero(); ++k) {
    power = Multiply(power, square, w);
    sum += power / (2 * k + 1);
  }
  return 2 * sum;
}

/// As TwiceAtanh, with signs that alternate.
Integer Atan(const Integer& z, int64_t w) {
  const Integer square = Multiply(z, z, w);
  Integer power = z, sum = z;
  for (int64_t k = 1; !power.is_zero(); ++k) {
    power = Multiply(power, square, w);
    if (k % 2 == 1) {
      sum -= power / (2 * k + 1);
    } else {
      sum += power / (2 * k + 1);
    }
  }
  return sum;
}

SinCos SinAndCos(const Integer& r, int64_t w) {
  SinCos result{.sin = 0, .cos = 0};
  Integer term = Integer(1) << Count(w);
  for (int64_t n = 0; !term.is_zero(); ++n) {
    Integer& into = n % 2 == 0 ? result.cos : result.sin;
    if (n % 4 < 2) {
      into += term;
    } else {
      into -= term;
    }
    term = Multiply(term, r, w) / (n + 1);
  }
  return result;
}

/// All terms are positive: truncating everything gives a lower bound, rounding everything up an upper one.
Bounds ErfSeries(const Dyadic& x, int64_t w) {
  const Dyadic square = x * x;
  const Integer low_square = 2 * Of(square, w), high_square = 2 * (Of(square, w) + 1);
  Integer low = Of(x, w), high = low + 1;
  Bounds sum{.low = low, .high = high};
  for (int64_t n = 0;; ++n) {
    low = Multiply(low, low_square, w) / (2 * n + 3);
    high = (Multiply(high, high_square, w) + 1) / (2 * n + 3) + 1;
    sum.low += low;
    sum.high += high;
    // From here each term is less than half of the one before, so all that follow are less than this one, up
    // to the units of rounding up, which the lower bound does not have.
    if (low.is_zero() && high_square * 2 < (Integer(2 * n + 5) << Count(w))) {
      sum.high += 2 * high;
      return sum;
    }
  }
}

/// Terms shrink while 2n+1 < 2x^2; each errs by at most one unit more than the one before it.
Bounds ErfcSeries(const Dyadic& x, int64_t w) {
  const Integer square = 2 * Of(x * x, w) + 1;
  Integer term = Integer(1) << Count(w), sum = term, errors = 0;
  for (int64_t n = 0;; ++n) {
    const Integer next = ((term * (2 * n + 1)) << Count(w)) / square;
    errors += 2 * (n + 1);
    if (BitLength(next) < w / 2 || next >= term) {
      errors += 2 * next + 2 * (n + 1);
      return {.low = sum - errors, .high = sum + errors};
    }
    term = next;
    if (n % 2 == 0) {
      sum -= term;
    } else {
      sum += term;
    }
  }
}

}  // namespace ulpscope::fixed
