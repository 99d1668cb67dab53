// Enclosures of functions at points, by fixed-point series.
#include "oracles/functions/at_points.h"

#include <algorithm>
#include <cmath>

#include "harness/base/check.h"
#include "oracles/functions/fixed.h"

namespace ulpscope::points {
namespace {

using fixed::Integer;

constexpr int64_t kGuard = 96;
constexpr int64_t kErrorBits = 64;     ///< every kernel's error is below 2^kErrorBits units
constexpr int64_t kVanished = -47000;  ///< exponent of the value that replaces exp below -2^15
constexpr int64_t kMostAngleBits = 8192;

Dyadic Power(int64_t exponent) { return {.m = 1, .e = exponent}; }
Enclosure Point(const Dyadic& value) { return {.low = value, .high = value}; }

}  // namespace

/// floor(log2 |x|); x is not zero.
int64_t Exponent(const Dyadic& x) { return x.e + x.bits() - 1; }

namespace {

Dyadic Cut(const Dyadic& value, int64_t precision, Direction direction) {
  return Limit(value, precision, direction);
}

}  // namespace

Enclosure Outward(const Enclosure& a, int64_t precision) {
  return {.low = Cut(a.low, precision, Direction::kDown), .high = Cut(a.high, precision, Direction::kUp)};
}

namespace {

/// value 2^(exponent - w), off by less than 2^kErrorBits units.
Enclosure Around(const Integer& value, int64_t w, int64_t exponent, int64_t precision) {
  const Integer error = Integer(1) << kErrorBits;
  return Outward(
      {.low = {.m = value - error, .e = exponent - w}, .high = {.m = value + error, .e = exponent - w}},
      precision);
}

Enclosure Negated(const Enclosure& a) { return {.low = Negate(a.high), .high = Negate(a.low)}; }

}  // namespace

double Approximate(const Dyadic& x) {
  int rest = 0;
  return ToTwoDoubles(x, &rest).hi;
}

namespace {

/// At most 1, and at least 1 - 2^-(p+8).
Enclosure JustBelowOne(int64_t precision) {
  return {.low = Whole(1) - Power(-precision - 8), .high = Whole(1)};
}

/// x = k ln 2 + r with |r| <= 1/2: k of up to 17 bits multiplies an error of 3 units.
Enclosure ExpAt(const Dyadic& x, int64_t precision) {
  if (x.is_zero()) return Point(Whole(1));
  if (Exponent(x) >= kSaturation) {
    ULPSCOPE_CHECK(x.sign() < 0, "overflow of exp is not an enclosure");
    return {.low = {}, .high = Power(kVanished)};
  }
  if (Exponent(x) < -precision - 4)
    return Outward({.low = Whole(1) + x, .high = Whole(1) + x + x * x}, precision);
  const int64_t w = precision + kGuard;
  const int64_t k = std::lround(Approximate(x) * 1.4426950408889634);
  const Integer r = fixed::Of(x, w) - k * fixed::Ln2(w);
  return Around(fixed::Exp(r, w), w, k, precision);
}

/// exp(x) - 1 with as many more bits as the subtraction loses.
Enclosure Expm1At(const Dyadic& x, int64_t precision) {
  if (x.is_zero()) return Point({});
  if (Exponent(x) < -precision - 4) return Outward({.low = x, .high = x + x * x}, precision);
  const Enclosure whole = ExpAt(x, precision + 8 + std::max<int64_t>(0, -Exponent(x)));
  return Outward({.low = whole.low - Whole(1), .high = whole.high - Whole(1)}, precision);
}

/// x = m 2^k with m in [2/3, 4/3): log x = k ln 2 + 2 atanh((m - 1) / (m + 1)).
Enclosure LogAt(const Dyadic& x, int64_t precision) {
  const int64_t top = Exponent(x);
  Dyadic m{.m = x.m, .e = x.e - top};
  int64_t k = top;
  if (Compare(Whole(3) * m, Whole(4)) >= 0) {
    --m.e;
    ++k;
  }
  const Dyadic off = m - Whole(1);
  if (off.is_zero() && k == 0) return Point({});
  if (k == 0 && Exponent(off) < -precision - 4)
    return Outward({.low = off - off * off, .high = off}, precision);
  const int64_t lost = k == 0 ? -Exponent(off) : 0;
  const int64_t w = precision + kGuard + lost;
  const Integer z = fixed::Of(Divide(off, m + Whole(1), w + 8, Direction::kDown), w);
  return Around(fixed::TwiceAtanh(z, w) + k * fixed::Ln2(w), w, 0, precision);
}

Enclosure Log1pAt(const Dyadic& x, int64_t precision) {
  if (x.is_zero()) return Point({});
  if (Exponent(x) < -precision - 4) return Outward({.low = x - x * x, .high = x}, precision);
  return LogAt(Whole(1) + x, precision);
}

}  // namespace

/// |x| = n pi/2 + r. The error of pi/2 is multiplied by n < 2^(e+1), so pi/2 is computed to e + 16 more bits. If r (and
/// so its sine) is small, bits are added until it has enough.
Enclosure WaveAt(Wave wave, const Dyadic& x, int64_t precision) {
  if (x.is_zero()) return Point(Whole(wave == Wave::kSin ? 0 : 1));
  const bool negative = x.sign() < 0;
  const Dyadic magnitude = negative ? Negate(x) : x;
  const int64_t exponent = Exponent(x);
  if (exponent >= kMostAngleBits) return {.low = Whole(-1), .high = Whole(1)};
  if (exponent < -precision - 4) {
    const Dyadic cube = magnitude * magnitude * magnitude;
    if (wave == Wave::kCos)
      return Outward({.low = Whole(1) - magnitude * magnitude, .high = Whole(1)}, precision);
    const Enclosure sine{.low = magnitude - cube, .high = magnitude};
    return Outward(negative ? Negated(sine) : sine, precision);
  }
  for (int64_t extra = 16;;) {
    const int64_t w = precision + kGuard + extra;
    const int64_t reduction = w + std::max<int64_t>(0, exponent) + 16;
    const Integer angle = fixed::Of(magnitude, reduction), half_pi = fixed::Pi(reduction) / 2;
    const Integer n = (2 * angle + half_pi) / (2 * half_pi);
    const Integer r = fixed::ShiftRight(angle - n * half_pi, reduction - w);
    const int64_t lost = w - fixed::BitLength(r);
    if (lost > extra) {
      extra = lost + 16;
      continue;
    }
    const fixed::SinCos both = fixed::SinAndCos(r, w);
    const int quadrant = static_cast<int>(static_cast<int64_t>(n % 4)) + (wave == Wave::kCos ? 1 : 0);
    const Enclosure value = Around(quadrant % 2 == 0 ? both.sin : both.cos, w, 0, precision);
    const bool flip = (quadrant % 4 >= 2) != (negative && wave == Wave::kSin);
    return flip ? Negated(value) : value;
  }
}

namespace {

/// expm1(2|x|) / (expm1(2|x|) + 2), which grows with expm1.
Enclosure TanhAt(const Dyadic& x, int64_t precision) {
  if (x.is_zero()) return Point({});
  const Dyadic twice{.m = abs(x.m), .e = x.e + 1};
  Enclosure value;
  if (Compare(twice, Whole(precision + 16)) > 0) {
    value = JustBelowOne(precision);  // 1 - tanh(x) < 2 exp(-2x)
  } else {
    const Enclosure e = Expm1At(twice, precision + 8);
    value = {.low = Divide(e.low, e.low + Whole(2), precision, Direction::kDown),
             .high = Divide(e.high, e.high + Whole(2), precision, Direction::kUp)};
  }
  return x.sign() < 0 ? Negated(value) : value;
}

}  // namespace

Real Reals(const Enclosure& a) { return Real::Between(a.low, a.high); }

Real PiReal(int64_t precision) {
  const int64_t w = precision + kGuard;
  return Reals(Around(fixed::Pi(w), w, 0, precision));
}

namespace {

Enclosure EndsOf(const Real& a) { return {.low = a.lo(), .high = a.hi()}; }

/// 2/sqrt(pi) exp(-x^2) times the series; x > 0.
Enclosure ErfOfPositive(const Dyadic& x, int64_t precision) {
  // erfc(x) < exp(-x^2) for every x > 0.
  if (Exponent(x) > 14 || Compare(x * x, Whole(precision + 8)) > 0) return JustBelowOne(precision);
  const int64_t p = precision + 16;
  Real value;
  if (Exponent(x) < -p) {
    value = Real::Between(x - x * x * x, x);
  } else {
    const fixed::Bounds series = fixed::ErfSeries(x, p + kGuard + std::max<int64_t>(0, -Exponent(x)));
    const int64_t w = p + kGuard + std::max<int64_t>(0, -Exponent(x));
    value = Multiply(Real::Between({.m = series.low, .e = -w}, {.m = series.high, .e = -w}),
                     Reals(ExpAt(Negate(x * x), p)), p);
  }
  value = Divide(Multiply(Real::From(2.0), value, p), SquareRoot(PiReal(p), p), p);
  return Outward(EndsOf(value), precision);
}

Enclosure ErfAt(const Dyadic& x, int64_t precision) {
  if (x.is_zero()) return Point({});
  return x.sign() > 0 ? ErfOfPositive(x, precision) : Negated(ErfOfPositive(Negate(x), precision));
}

/// exp(-x^2) / (x sqrt(pi)) times an asymptotic series where its smallest term, about exp(-x^2), is small
/// enough; before that 1 - erf, which cancels as many bits.
Enclosure ErfcAt(const Dyadic& x, int64_t precision) {
  if (x.is_zero()) return Point(Whole(1));
  if (x.sign() < 0) {
    const Enclosure erf = ErfOfPositive(Negate(x), precision + 8);
    return Outward({.low = Whole(1) + erf.low, .high = Whole(1) + erf.high}, precision);
  }
  const Dyadic square = x * x;
  if (Exponent(square) >= kSaturation) return {.low = {}, .high = Power(kVanished)};
  // exp(-x^2) < 2^-(p+40): x^2 > (p + 40) ln 2.
  if (Compare(square, Whole(precision + 40)) > 0) {
    const int64_t p = precision + 16, w = 2 * p + kGuard;
    const fixed::Bounds series = fixed::ErfcSeries(x, w);
    Real value = Multiply(Real::Between({.m = series.low, .e = -w}, {.m = series.high, .e = -w}),
                          Reals(ExpAt(Negate(square), p)), p);
    value = Divide(value, Multiply(Real::From(x), SquareRoot(PiReal(p), p), p), p);
    return Outward(EndsOf(value), precision);
  }
  const int64_t lost = static_cast<int64_t>(Approximate(square) * 1.45) + 16;
  const Enclosure erf = ErfOfPositive(x, precision + lost);
  return Outward({.low = Whole(1) - erf.high, .high = Whole(1) - erf.low}, precision);
}

}  // namespace

Real Ln2Real(int64_t precision) {
  const int64_t w = precision + kGuard;
  return Reals(Around(fixed::Ln2(w), w, 0, precision));
}

namespace {

/// exp(x ln 2), whose argument may err by a part of 2^-(p+32) of less than 2^15.
Enclosure Exp2At(const Dyadic& x, int64_t precision) {
  if (x.is_zero()) return Point(Whole(1));
  const int64_t exponent = Exponent(x);
  if (exponent >= kSaturation) {
    ULPSCOPE_CHECK(x.sign() < 0, "overflow of exp2 is not an enclosure");
    return {.low = {}, .high = Power(kVanished / 2)};
  }
  const double near = Approximate(x);
  if (near == std::trunc(near) && Compare(Dyadic::From(near), x) == 0)
    return Point(Power(static_cast<int64_t>(near)));
  const Real scaled = Multiply(Real::From(x), Ln2Real(precision + 32), precision + 32);
  return {.low = ExpAt(scaled.lo(), precision).low, .high = ExpAt(scaled.hi(), precision).high};
}

Enclosure Log2At(const Dyadic& x, int64_t precision) {
  if (Compare(x, Power(Exponent(x))) == 0) return Point(Whole(Exponent(x)));
  const Real log = Reals(LogAt(x, precision + 16));
  return EndsOf(Divide(log, Ln2Real(precision + 16), precision));
}

/// (e + e / (e + 1)) / 2 with e = expm1(|x|): two positive terms, which grow with e.
Enclosure SinhAt(const Dyadic& x, int64_t precision) {
  if (x.is_zero()) return Point({});
  const Enclosure e = Expm1At(x.sign() < 0 ? Negate(x) : x, precision + 8);
  const auto half = [&](const Dyadic& a, Direction direction) {
    const Dyadic twice = a + Divide(a, a + Whole(1), precision + 8, direction);
    return Dyadic{.m = twice.m, .e = twice.e - 1};
  };
  const Enclosure value =
      Outward({.low = half(e.low, Direction::kDown), .high = half(e.high, Direction::kUp)}, precision);
  return x.sign() < 0 ? Negated(value) : value;
}

/// (e + 1 / e) / 2 with e = exp(|x|), which grows with e from 1 on.
Enclosure CoshAt(const Dyadic& x, int64_t precision) {
  if (x.is_zero()) return Point(Whole(1));
  const Enclosure e = ExpAt(x.sign() < 0 ? Negate(x) : x, precision + 8);
  const auto half = [&](const Dyadic& a, Direction direction) {
    const Dyadic twice = a + Divide(Whole(1), a, precision + 8, direction);
    return Dyadic{.m = twice.m, .e = twice.e - 1};
  };
  return Outward({.low = half(e.low, Direction::kDown), .high = half(e.high, Direction::kUp)}, precision);
}

}  // namespace

/// z = tan of a quarter of the angle, which two halvings make smaller than 0.2: tan(a/2) = t / (1 + sqrt(1 + t^2)); of t > 1 the
/// angle of its reciprocal is taken from pi/2.
Enclosure AtanAt(const Dyadic& x, int64_t precision) {
  if (x.is_zero()) return Point({});
  const bool negative = x.sign() < 0;
  const Dyadic magnitude = negative ? Negate(x) : x;
  if (Exponent(x) < -precision - 4) {
    const Enclosure tiny =
        Outward({.low = magnitude - magnitude * magnitude * magnitude, .high = magnitude}, precision);
    return negative ? Negated(tiny) : tiny;
  }
  const int64_t p = precision + 32;
  const bool beyond = Compare(magnitude, Whole(1)) > 0;
  Real z = beyond ? Divide(Real::From(1.0), Real::From(magnitude), p) : Real::From(magnitude);
  for (int halving = 0; halving < 2; ++halving) {
    const Real root = SquareRoot(Add(Real::From(1.0), Multiply(z, z, p), p), p);
    z = Divide(z, Add(Real::From(1.0), root, p), p);
  }
  const int64_t w = p + kGuard + std::max<int64_t>(0, -Exponent(z.lo()));
  Enclosure angle{.low = Around(fixed::Atan(fixed::Of(z.lo(), w), w), w, 2, p).low,
                  .high = Around(fixed::Atan(fixed::Of(z.hi(), w), w), w, 2, p).high};
  if (beyond) {
    const Enclosure half_pi = Around(fixed::Pi(w), w, -1, p);
    angle = {.low = half_pi.low - angle.high, .high = half_pi.high - angle.low};
  }
  angle = Outward(angle, precision);
  return negative ? Negated(angle) : angle;
}

/// f at a point of its domain.
Enclosure At(NodeKind kind, const Dyadic& x, int64_t precision) {
  switch (kind) {
    case NodeKind::kExp:
      return ExpAt(x, precision);
    case NodeKind::kExpm1:
      return Expm1At(x, precision);
    case NodeKind::kLog:
      return LogAt(x, precision);
    case NodeKind::kLog1p:
      return Log1pAt(x, precision);
    case NodeKind::kSin:
      return WaveAt(Wave::kSin, x, precision);
    case NodeKind::kCos:
      return WaveAt(Wave::kCos, x, precision);
    case NodeKind::kTanh:
      return TanhAt(x, precision);
    case NodeKind::kErf:
      return ErfAt(x, precision);
    case NodeKind::kErfc:
      return ErfcAt(x, precision);
    case NodeKind::kExp2:
      return Exp2At(x, precision);
    case NodeKind::kLog2:
      return Log2At(x, precision);
    case NodeKind::kSinh:
      return SinhAt(x, precision);
    case NodeKind::kCosh:
      return CoshAt(x, precision);
    default:
      break;
  }
  ULPSCOPE_CHECK(false, "not a function node");
}

}  // namespace ulpscope::points
