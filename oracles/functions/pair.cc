// Series on pairs of doubles.
#include "oracles/functions/pair.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "harness/base/check.h"
#include "harness/base/hash.h"
#include "harness/num/error_free.h"
#include "oracles/functions/exact.h"
#include "oracles/functions/fixed.h"

namespace ulpscope {
namespace {

constexpr double kDenormal = std::numeric_limits<double>::denorm_min();
constexpr TwoDoubles kOne{.hi = 1, .lo = 0};

TwoDoubles Exact(double value) { return {.hi = value, .lo = 0}; }
TwoDoubles Scale(TwoDoubles a, double power_of_two) {
  return {.hi = a.hi * power_of_two, .lo = a.lo * power_of_two};
}
TwoDoubles Subtract(TwoDoubles a, TwoDoubles b) { return Add(a, Negate(b)); }

/// A constant cut into pieces of 32 bits: a whole number below 2^20 times a piece is exact.
using Pieces = std::array<double, 6>;

Pieces Cut(const fixed::Integer& value, int64_t w) {
  Pieces pieces{};
  fixed::Integer rest = value;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int64_t shift = w - 32 * static_cast<int64_t>(i + 1);
    const fixed::Integer top = rest >> static_cast<unsigned>(shift);
    rest -= top << static_cast<unsigned>(shift);
    pieces[i] = std::ldexp(top.convert_to<double>(), -32 * static_cast<int>(i + 1));
  }
  return pieces;
}

const Pieces& Ln2Pieces() {
  static const Pieces pieces = Cut(fixed::Ln2(256), 256);
  return pieces;
}
const Pieces& HalfPiPieces() {
  static const Pieces pieces = Cut(fixed::Pi(256) / 2, 256);
  return pieces;
}

TwoDoubles TimesPieces(double k, const Pieces& pieces) {
  TwoDoubles product;
  for (size_t i = pieces.size(); i-- > 0;) product = Add(Exact(k * pieces[i]), product);
  return product;
}

/// a - k constant, piece by piece from the largest: the leading cancellation is exact.
TwoDoubles Reduce(TwoDoubles a, double k, const Pieces& pieces) {
  for (const double piece : pieces) a = Subtract(a, Exact(k * piece));
  return a;
}

/// 1/n!
const std::array<TwoDoubles, 32>& InverseFactorials() {
  static const std::array<TwoDoubles, 32> table = [] {
    std::array<TwoDoubles, 32> made{};
    made[0] = kOne;
    for (size_t n = 1; n < made.size(); ++n) made[n] = Divide(made[n - 1], Exact(static_cast<double>(n)));
    return made;
  }();
  return table;
}

/// exp(r) - 1 for |r| <= 0.36: the series of r / 256 to degree 10 (remainder below 2^-118), then p -> 2p +
/// p^2 eight times.
TwoDoubles SmallExpm1(TwoDoubles r) {
  const TwoDoubles x = Scale(r, 0x1p-8);
  TwoDoubles sum = InverseFactorials()[10];
  for (size_t n = 10; n-- > 1;) sum = Add(Multiply(sum, x), InverseFactorials()[n]);
  TwoDoubles p = Multiply(sum, x);
  for (int i = 0; i < 8; ++i) p = Add(Scale(p, 2), Multiply(p, p));
  return p;
}

/// a 2^k; a result among the subnormals is rounded once, `lo` keeps the sign of the rest.
TwoDoubles TimesPowerOfTwo(TwoDoubles a, int k) {
  const double hi = std::ldexp(a.hi, k);
  if (!std::isfinite(hi) || std::fabs(hi) >= 0x1p-968)
    return {.hi = hi, .lo = std::isfinite(hi) ? std::ldexp(a.lo, k) : 0};
  if (a.hi == 0 || k < -1200)
    return {.hi = std::copysign(0.0, a.hi), .lo = a.hi == 0 ? 0 : std::copysign(kDenormal, a.hi)};
  // In units of the subnormal quantum; a tie of the head is decided by the tail.
  const double units = std::ldexp(a.hi, k + 1074), tail = a.lo;
  double rounded = std::nearbyint(units);
  if (std::fabs(units - rounded) == 0.5 && tail != 0)
    rounded = tail > 0 ? std::ceil(units) : std::floor(units);
  const double rest = units == rounded ? tail : units - rounded;
  return {.hi = std::ldexp(rounded, -1074), .lo = rest == 0 ? 0 : std::copysign(kDenormal, rest)};
}

TwoDoubles PairExp(TwoDoubles a) {
  if (a.hi > 710) return Exact(std::numeric_limits<double>::infinity());
  if (a.hi < -800) return {.hi = 0, .lo = kDenormal};
  const double k = std::nearbyint(a.hi * 1.4426950408889634);
  const TwoDoubles p = SmallExpm1(Reduce(a, k, Ln2Pieces()));
  return TimesPowerOfTwo(Add(kOne, p), static_cast<int>(k));
}

TwoDoubles PairExpm1(TwoDoubles a) {
  if (std::fabs(a.hi) < 0x1p-300) return a;
  if (std::fabs(a.hi) < 0.34) return SmallExpm1(a);
  return Subtract(PairExp(a), kOne);
}

/// One step of Halley's iteration on expm1 from the library's logarithm: cubic, so its 2^-50 becomes far less
/// than 2^-104.
TwoDoubles PairLog1p(TwoDoubles z) {
  if (std::fabs(z.hi) < 0x1p-300) return z;
  const double start = std::log1p(z.hi);
  const TwoDoubles e = PairExpm1(Exact(start));
  const TwoDoubles step = Divide(Scale(Subtract(z, e), 2), Add(Add(Exact(2), z), e));
  return Add(Exact(start), step);
}

TwoDoubles PairLog(TwoDoubles a) {
  if (a.hi >= 0.5 && a.hi <= 2) return PairLog1p(Subtract(a, kOne));
  int exponent = 0;
  std::frexp(a.hi, &exponent);
  const TwoDoubles m{.hi = std::ldexp(a.hi, -exponent), .lo = std::ldexp(a.lo, -exponent)};  // in [1/2, 1)
  return Add(TimesPieces(exponent, Ln2Pieces()), PairLog1p(Subtract(m, kOne)));
}

/// log1p for z that 1 + z leaves positive.
TwoDoubles PairLog1pAnywhere(TwoDoubles z) {
  if (z.hi > -0.5 && z.hi < 1) return PairLog1p(z);
  return PairLog(Add(kOne, z));
}

TwoDoubles FromExact(NodeKind kind, TwoDoubles a) {
  const Real value = ApplyFunction(kind, Real::From(Dyadic::From(a.hi) + Dyadic::From(a.lo)), 256);
  if (value.is_domain()) return Exact(value.domain());
  int rest = 0;
  return ToTwoDoubles(value.lo(), &rest);
}

/// Degree 29 at |r| <= 0.79: the remainder is below 2^-110 relative.
TwoDoubles SinSeries(TwoDoubles r) {
  const TwoDoubles square = Negate(Multiply(r, r));
  TwoDoubles sum = InverseFactorials()[29];
  for (int n = 27; n >= 1; n -= 2)
    sum = Add(Multiply(sum, square), InverseFactorials()[static_cast<size_t>(n)]);
  return Multiply(sum, r);
}
TwoDoubles CosSeries(TwoDoubles r) {
  const TwoDoubles square = Negate(Multiply(r, r));
  TwoDoubles sum = InverseFactorials()[30];
  for (int n = 28; n >= 0; n -= 2)
    sum = Add(Multiply(sum, square), InverseFactorials()[static_cast<size_t>(n)]);
  return sum;
}

TwoDoubles PairWave(NodeKind kind, TwoDoubles a) {
  if (std::fabs(a.hi) < 0x1p-300)
    return kind == NodeKind::kSin ? a : TwoDoubles{.hi = 1, .lo = a.hi == 0 ? 0 : -kDenormal};
  if (std::fabs(a.hi) > 0x1p19) return FromExact(kind, a);
  const double n = std::nearbyint(a.hi * 0.63661977236758134);
  const TwoDoubles r = n == 0 ? a : Reduce(a, n, HalfPiPieces());
  if (n != 0 && std::fabs(r.hi) < 0x1p-30) return FromExact(kind, a);
  const auto quadrant = (static_cast<int64_t>(n) + (kind == NodeKind::kCos ? 1 : 0)) & 3;
  const TwoDoubles value = quadrant % 2 == 0 ? SinSeries(r) : CosSeries(r);
  return quadrant >= 2 ? Negate(value) : value;
}

TwoDoubles PairTanh(TwoDoubles a) {
  if (a.hi < 0) return Negate(PairTanh(Negate(a)));
  if (a.hi < 0x1p-300) return a;
  if (a.hi > 38) return {.hi = 1, .lo = -std::max(2 * std::exp(-2 * a.hi), kDenormal)};
  const TwoDoubles e = PairExpm1(Scale(a, 2));
  return Divide(e, Add(e, Exact(2)));
}

const TwoDoubles& RootOfPi() {
  static const TwoDoubles root = SquareRoot(TimesPieces(2, HalfPiPieces()));
  return root;
}

TwoDoubles Gauss(TwoDoubles x) { return PairExp(Negate(Multiply(x, x))); }

/// The series of fixed::ErfSeries: positive terms, so nothing cancels. 0 < x <= 9.
TwoDoubles ErfSeries(TwoDoubles x) {
  const TwoDoubles twice = Scale(Multiply(x, x), 2);
  TwoDoubles term = x, sum = x;
  for (int n = 0; term.hi > sum.hi * 0x1p-108; ++n) {
    term = Divide(Multiply(term, twice), Exact(2 * n + 3));
    sum = Add(sum, term);
  }
  return Divide(Scale(Multiply(sum, Gauss(x)), 2), RootOfPi());
}

/// Laplace's continued fraction, x + (1/2)/(x + (2/2)/(x + ...)), from the end; 110 levels leave less than
/// 2^-105 at x >= 3.
TwoDoubles ErfcFraction(TwoDoubles x) {
  TwoDoubles tail = x;
  for (int level = 110; level >= 1; --level) tail = Add(x, Divide(Exact(0.5 * level), tail));
  const TwoDoubles below = Multiply(tail, RootOfPi());
  const TwoDoubles gauss = Gauss(x);
  if (gauss.hi >= 0x1p-900) return Divide(gauss, below);
  // exp(-x^2) near the subnormals: one factor 2^300 at a time.
  const TwoDoubles raised = PairExp(Add(TimesPieces(300, Ln2Pieces()), Negate(Multiply(x, x))));
  return TimesPowerOfTwo(Divide(raised, below), -300);
}

TwoDoubles PairErf(TwoDoubles a) {
  if (a.hi < 0) return Negate(PairErf(Negate(a)));
  if (a.hi == 0) return a;
  if (a.hi < 0x1p-300) return Divide(Scale(a, 2), RootOfPi());
  if (a.hi > 8.5) return {.hi = 1, .lo = -std::max(std::erfc(a.hi), kDenormal)};
  return ErfSeries(a);
}

TwoDoubles PairErfc(TwoDoubles a) {
  if (a.hi < 3) return Subtract(kOne, PairErf(a));
  return a.hi > 28 ? TwoDoubles{.hi = 0, .lo = kDenormal} : ErfcFraction(a);
}

const TwoDoubles& PairLn2() {
  static const TwoDoubles ln2 = TimesPieces(1, Ln2Pieces());
  return ln2;
}

/// 2^k exp((a - k) ln 2): the difference is exact.
TwoDoubles PairExp2(TwoDoubles a) {
  if (a.hi > 1025) return Exact(std::numeric_limits<double>::infinity());
  if (a.hi < -1200) return {.hi = 0, .lo = kDenormal};
  const double k = std::nearbyint(a.hi);
  const TwoDoubles rest = Subtract(a, Exact(k));
  return TimesPowerOfTwo(Add(kOne, SmallExpm1(Multiply(rest, PairLn2()))), static_cast<int>(k));
}

/// The logarithm of the quotient by a power of two, so that powers of two give whole numbers.
TwoDoubles PairLog2(TwoDoubles a) {
  int exponent = 0;
  const double fraction = std::frexp(a.hi, &exponent);
  if (fraction < 0.70710678118654752) --exponent;
  const TwoDoubles m{.hi = std::ldexp(a.hi, -exponent), .lo = std::ldexp(a.lo, -exponent)};
  return Add(Exact(exponent), Divide(PairLog1p(Subtract(m, kOne)), PairLn2()));
}

TwoDoubles PairSinh(TwoDoubles a) {
  if (a.hi < 0) return Negate(PairSinh(Negate(a)));
  if (a.hi < 0x1p-300) return a;
  if (a.hi > 700) return PairExp(Subtract(a, PairLn2()));
  const TwoDoubles e = PairExpm1(a);
  return Scale(Add(e, Divide(e, Add(e, kOne))), 0.5);
}

TwoDoubles PairCosh(TwoDoubles a) {
  if (a.hi < 0) a = Negate(a);
  if (a.hi < 0x1p-300) return {.hi = 1, .lo = a.hi == 0 ? 0 : kDenormal};
  if (a.hi > 700) return PairExp(Subtract(a, PairLn2()));
  const TwoDoubles e = PairExp(a);
  return Scale(Add(e, Divide(kOne, e)), 0.5);
}

/// 2^x in float32 from the bits of x 2^23, whose fraction a polynomial of the third degree corrects: Malossi, Ineichen, Bekas and
/// Curioni, "Fast Exponential Computation on SIMD Architectures", 2015, with the constants of fexp_u20 in PyTorch's vector headers.
TwoDoubles FastExp(TwoDoubles a) {
  constexpr float kFirstNormal = -87.3365447F, kFirstInfinite = 88.7228394F;
  const auto x = static_cast<float>(a.hi);
  if (x < kFirstNormal) return Exact(0);
  if (x > kFirstInfinite) return Exact(std::numeric_limits<double>::infinity());
  const float scaled = x * std::numbers::log2e_v<float>;
  const float rest = scaled - std::floor(scaled);
  float curve = std::fma(rest, -0.079204240219773236F, -0.22433836478672356F);
  curve = std::fma(rest, curve, 0.30354260500649682F);
  curve = std::fma(rest, curve, 0.00010703434948458272F);
  const float bits = std::fma(0x1p23F, scaled - curve, 127 * 0x1p23F);
  return Exact(std::bit_cast<float>(static_cast<int32_t>(bits)));
}

TwoDoubles Compute(NodeKind kind, TwoDoubles a) {
  switch (kind) {
    case NodeKind::kFastExp:
      return FastExp(a);
    case NodeKind::kExp:
      return PairExp(a);
    case NodeKind::kExpm1:
      return PairExpm1(a);
    case NodeKind::kLog:
      return a.hi <= 0 ? Exact(std::log(a.hi)) : PairLog(a);
    case NodeKind::kLog1p:
      return a.hi < -1 || (a.hi == -1 && a.lo <= 0) ? Exact(std::log1p(a.hi)) : PairLog1pAnywhere(a);
    case NodeKind::kSin:
    case NodeKind::kCos:
      return PairWave(kind, a);
    case NodeKind::kTanh:
      return PairTanh(a);
    case NodeKind::kErf:
      return PairErf(a);
    case NodeKind::kErfc:
      return PairErfc(a);
    case NodeKind::kExp2:
      return PairExp2(a);
    case NodeKind::kLog2:
      return a.hi <= 0 ? Exact(std::log(a.hi)) : PairLog2(a);
    case NodeKind::kSinh:
      return PairSinh(a);
    case NodeKind::kCosh:
      return PairCosh(a);
    default:
      break;
  }
  ULPSCOPE_CHECK(false, "not a function node");
}

/// Models of one case request the same arguments again and again.
class Memo {
 public:
  TwoDoubles At(NodeKind kind, TwoDoubles a) {
    constexpr size_t kMost = size_t{1} << 16;
    if (known_.size() >= kMost) known_.clear();
    const Key key{.kind = kind, .hi = std::bit_cast<uint64_t>(a.hi), .lo = std::bit_cast<uint64_t>(a.lo)};
    const auto [entry, fresh] = known_.try_emplace(key);
    if (fresh) entry->second = Compute(kind, a);
    return entry->second;
  }

 private:
  struct Key {
    NodeKind kind;
    uint64_t hi, lo;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      return static_cast<size_t>(MixBits(key.hi + kGoldenGamma * (key.lo + static_cast<uint64_t>(key.kind))));
    }
  };
  std::unordered_map<Key, TwoDoubles, Hash> known_;
};

}  // namespace

TwoDoubles PairFunction(NodeKind kind, TwoDoubles a) {
  if (std::isnan(a.hi)) return a;
  if (std::isinf(a.hi)) {
    const Real limit = ApplyFunction(kind, Real::From(a.hi), 64);
    int rest = 0;
    return limit.is_domain() ? Exact(limit.domain()) : ToTwoDoubles(limit.lo(), &rest);
  }
  thread_local Memo memo;
  return memo.At(kind, a);
}

TwoDoubles PairPower(TwoDoubles a, double exponent) {
  const double plain = std::pow(a.hi, exponent), magnitude = std::fabs(exponent);
  if (!std::isfinite(a.hi) || a.hi == 0 || !std::isfinite(plain) || exponent == 0) return Exact(plain);
  if (magnitude * 8 == std::trunc(magnitude * 8) && magnitude <= 64 && std::fabs(plain) > 0x1p-900 &&
      std::fabs(plain) < 0x1p900) {
    TwoDoubles root = a, result = kOne;
    double power = magnitude;
    for (; power != std::trunc(power); power *= 2) root = SquareRoot(root);
    for (auto left = static_cast<int64_t>(power); left > 0; left /= 2) {
      if (left % 2 == 1) result = Multiply(result, root);
      if (left > 1) root = Multiply(root, root);
    }
    return exponent < 0 ? Divide(kOne, result) : result;
  }
  const TwoDoubles raised = PairExp(Multiply(Exact(exponent), PairLog(a.hi < 0 ? Negate(a) : a)));
  return std::signbit(plain) ? Negate(raised) : raised;
}

TwoDoubles PairAngle(int eighths) { return TimesPieces(0.5 * eighths, HalfPiPieces()); }

namespace {

/// One step from the library's angle s, whose 2^-52 becomes its cube: atan t = s + atan((t cos s - sin s) / (cos s + t sin s)).
/// 0 <= t <= 1.
TwoDoubles PairAtan(TwoDoubles t) {
  if (t.hi < 0x1p-300) return t;
  const TwoDoubles start = Exact(std::atan(t.hi));
  const TwoDoubles sin = PairWave(NodeKind::kSin, start), cos = PairWave(NodeKind::kCos, start);
  return Add(start, Divide(Subtract(Multiply(t, cos), sin), Add(cos, Multiply(t, sin))));
}

}  // namespace

TwoDoubles PairAtan2(TwoDoubles y, TwoDoubles x) {
  const double plain = std::atan2(y.hi, x.hi);
  if (std::isnan(plain) || plain == 0) return Exact(plain);
  const TwoDoubles up = y.hi < 0 ? Negate(y) : y, right = x.hi < 0 ? Negate(x) : x;
  TwoDoubles angle;
  if (std::isinf(up.hi) || std::isinf(right.hi)) {
    angle = PairAngle(std::isinf(up.hi) && std::isinf(right.hi) ? 1 : std::isinf(up.hi) ? 2 : 0);
  } else if (up.hi <= right.hi) {
    angle = PairAtan(Divide(up, right));
  } else {
    angle = Subtract(PairAngle(2), PairAtan(Divide(right, up)));
  }
  if (std::signbit(x.hi)) angle = Subtract(PairAngle(4), angle);
  return plain < 0 ? Negate(angle) : angle;
}

TwoDoubles PairConstant(Irrational constant) {
  switch (constant) {
    case Irrational::kTwoOverSqrtPi:
      return Divide(Exact(2), RootOfPi());
    case Irrational::kLn2:
      return PairLn2();
    case Irrational::kSqrtHalf:
      return SquareRoot(Exact(0.5));
    case Irrational::kSqrtTwoOverPi:
      return SquareRoot(Divide(kOne, TimesPieces(1, HalfPiPieces())));
  }
  ULPSCOPE_CHECK(false, "a constant without a value");
}

}  // namespace ulpscope
