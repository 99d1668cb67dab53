// Images of enclosures under functions, and the tables of 16-bit arguments.
#include "oracles/functions/exact.h"

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "harness/base/check.h"
#include "harness/base/hash.h"
#include "oracles/functions/at_points.h"

namespace ulpscope {
namespace {

using namespace points;

double AtInfinity(NodeKind kind, double x) {
  const bool up = x > 0;
  switch (kind) {
    case NodeKind::kExp:
    case NodeKind::kExp2:
      return up ? x : 0;
    case NodeKind::kSinh:
      return x;
    case NodeKind::kCosh:
      return std::fabs(x);
    case NodeKind::kExpm1:
      return up ? x : -1;
    case NodeKind::kLog:
    case NodeKind::kLog2:
    case NodeKind::kLog1p:
      return up ? x : std::nan("");
    case NodeKind::kTanh:
    case NodeKind::kErf:
      return up ? 1 : -1;
    case NodeKind::kErfc:
      return up ? 0 : 2;
    default:
      return std::nan("");
  }
}

/// sin and cos move at most as far as their argument; a wide argument gives the whole range.
Real WaveOf(Wave wave, const Real& a, int64_t precision) {
  if (a.is_point()) return Reals(WaveAt(wave, a.lo(), precision));
  const Dyadic width = a.hi() - a.lo();
  if (Compare(width, points::Whole(1)) >= 0) return Real::Between(points::Whole(-1), points::Whole(1));
  const Enclosure at = WaveAt(wave, a.lo(), precision);
  return Reals(Outward({.low = at.low - width, .high = at.high + width}, precision));
}

bool IsFalling(NodeKind kind) { return kind == NodeKind::kErfc; }

}  // namespace

Real ApplyFunction(NodeKind kind, const Real& a, int64_t precision) {
  if (kind == NodeKind::kFastExp) kind = NodeKind::kExp;
  if (a.is_undecided()) return a;
  if (a.is_domain()) return std::isnan(a.domain()) ? a : Real::From(AtInfinity(kind, a.domain()));
  if (kind == NodeKind::kSin) return WaveOf(Wave::kSin, a, precision);
  if (kind == NodeKind::kCos) return WaveOf(Wave::kCos, a, precision);
  if (kind == NodeKind::kLog || kind == NodeKind::kLog1p || kind == NodeKind::kLog2) {
    const Dyadic edge = kind == NodeKind::kLog1p ? points::Whole(-1) : Dyadic{};
    if (Compare(a.hi(), edge) < 0) return DomainValue(std::nan(""));
    if (Compare(a.lo(), edge) <= 0)
      return a.is_point() ? DomainValue(-std::numeric_limits<double>::infinity()) : UndecidedValue();
  }
  // cosh falls and rises: its image is that of the magnitudes.
  if (kind == NodeKind::kCosh && a.lo().sign() < 0) return ApplyFunction(kind, Absolute(a), precision);
  if (kind == NodeKind::kSinh && a.hi().sign() <= 0 && a.lo().sign() < 0 && Exponent(a.lo()) >= kSaturation) {
    const Real mirrored = ApplyFunction(kind, Absolute(a), precision);
    return mirrored.is_undecided() ? mirrored : DomainValue(-std::numeric_limits<double>::infinity());
  }
  if (kind == NodeKind::kExp || kind == NodeKind::kExpm1 || kind == NodeKind::kExp2 ||
      kind == NodeKind::kSinh || kind == NodeKind::kCosh) {
    const auto overflows = [](const Dyadic& x) { return x.sign() > 0 && Exponent(x) >= kSaturation; };
    if (kind == NodeKind::kSinh && a.lo().sign() < 0 && Exponent(a.lo()) >= kSaturation)
      return UndecidedValue();
    if (overflows(a.hi()))
      return overflows(a.lo()) ? DomainValue(std::numeric_limits<double>::infinity()) : UndecidedValue();
  }
  const Enclosure low = At(kind, a.lo(), precision);
  if (a.is_point()) return Reals(low);
  const Enclosure high = At(kind, a.hi(), precision);
  return IsFalling(kind) ? Real::Between(high.low, low.high) : Real::Between(low.low, high.high);
}

namespace {

/// One function over one 16-bit format.
class Table {
 public:
  Real At(NodeKind kind, DType dtype, double value, int64_t precision) {
    std::array<std::byte, 2> bytes{};
    EncodeElement(value, dtype, bytes.data());
    const size_t index = static_cast<size_t>(bytes[0]) | static_cast<size_t>(bytes[1]) << 8;
    const std::scoped_lock lock(mutex_);
    auto& entry = entries_[index];
    if (!entry) entry = std::make_unique<Real>(ApplyFunction(kind, Real::From(value), precision));
    return *entry;
  }

 private:
  std::mutex mutex_;
  std::array<std::unique_ptr<Real>, 65536> entries_;
};

Table& TableOf(NodeKind kind, DType dtype, int64_t precision) {
  static std::mutex mutex;
  static std::map<std::tuple<NodeKind, DType, int64_t>, std::unique_ptr<Table>> tables;
  const std::scoped_lock lock(mutex);
  auto& table = tables[{kind, dtype, precision}];
  if (!table) table = std::make_unique<Table>();
  return *table;
}

/// The latest arguments of each thread: backends that compute in one precision give the same operands, and the
/// subprograms of a program request the same functions of them.
class LatestFunctions {
 public:
  const Real& At(NodeKind kind, const Real& a, int64_t precision) {
    Entry& entry = entries_[IndexOf(kind, a, precision)];
    if (entry.kind != kind || entry.precision != precision || entry.lo.e != a.lo().e ||
        entry.hi.e != a.hi().e || entry.lo.m != a.lo().m || entry.hi.m != a.hi().m)
      entry = {.kind = kind,
               .precision = precision,
               .lo = a.lo(),
               .hi = a.hi(),
               .value = ApplyFunction(kind, a, precision)};
    return entry.value;
  }

 private:
  static constexpr size_t kEntries = size_t{1} << 14;
  struct Entry {
    NodeKind kind = NodeKind::kInput;
    int64_t precision = 0;
    Dyadic lo, hi;
    Real value;
  };

  static size_t IndexOf(NodeKind kind, const Real& a, int64_t precision) {
    const auto& limbs = a.lo().m.backend();
    uint64_t mixed = MixBits(static_cast<uint64_t>(kind) + static_cast<uint64_t>(precision) * kGoldenGamma +
                             static_cast<uint64_t>(a.lo().sign() + 1));
    mixed = MixBits(mixed + static_cast<uint64_t>(a.lo().e));
    for (size_t i = 0; i < limbs.size(); ++i) mixed = MixBits(mixed + limbs.limbs()[i]);
    return mixed % kEntries;
  }

  std::vector<Entry> entries_{kEntries};
};

}  // namespace

Real TabulatedFunction(NodeKind kind, const Real& a, int64_t precision) {
  if (a.is_domain() || a.is_undecided()) return ApplyFunction(kind, a, precision);
  if (!a.is_point() || a.lo().bits() > Binary16().precision) {
    thread_local LatestFunctions latest;
    return latest.At(kind, a, precision);
  }
  const double value = Approximate(a.lo());
  for (const DType dtype : {DType::kBfloat16, DType::kFloat16}) {
    if (std::isfinite(value) && IsRepresentable(value, *FormatOf(dtype)))
      return TableOf(kind, dtype, precision).At(kind, dtype, value, precision);
  }
  return ApplyFunction(kind, a, precision);
}

namespace {

/// By squaring; an even power of an enclosure is that of its magnitudes.
Real WholePower(const Real& a, int64_t exponent, int64_t precision) {
  Real result = Real::From(1.0), square = exponent % 2 == 0 ? Absolute(a) : a;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = Multiply(result, square, precision);
    if (exponent > 1) square = Multiply(square, square, precision);
  }
  return result;
}

}  // namespace

Real Power(const Real& a, double exponent, int64_t precision) {
  constexpr double kMostSquared = 64;
  if (exponent == 0) return Real::From(1.0);
  if (a.is_undecided()) return a;
  if (a.is_domain() || !std::isfinite(exponent)) {
    if (!a.is_domain() && !a.is_point()) return UndecidedValue();
    return DomainValue(std::pow(a.is_domain() ? a.domain() : Approximate(a.lo()), exponent));
  }
  const double magnitude = std::fabs(exponent);
  const bool whole = exponent == std::trunc(exponent);
  if (a.lo().sign() < 0 && !whole) return a.hi().sign() < 0 ? DomainValue(std::nan("")) : UndecidedValue();
  if (a.lo().sign() <= 0 && a.hi().sign() >= 0 && exponent < 0)
    return a.is_point() ? DomainValue(std::numeric_limits<double>::infinity()) : UndecidedValue();
  const int64_t inner = precision + 32;
  Real raised;
  if (magnitude * 8 == std::trunc(magnitude * 8) && magnitude <= kMostSquared) {
    Real root = a;
    double power = magnitude;
    for (; power != std::trunc(power); power *= 2) root = SquareRoot(root, inner);
    raised = WholePower(root, static_cast<int64_t>(power), inner);
    return exponent < 0 ? Divide(Real::From(1.0), raised, precision) : raised;
  }
  if (a.is_point() && a.lo().is_zero()) return Real::From(0.0);
  // Spans a zero: the exponents are so large that only the magnitude of an end is known.
  if (a.lo().sign() <= 0 && a.hi().sign() >= 0) return UndecidedValue();
  const Real log = ApplyFunction(NodeKind::kLog, Absolute(a), inner);
  raised = ApplyFunction(NodeKind::kExp, Multiply(Real::From(exponent), log, inner), precision);
  const bool odd = whole && std::fmod(magnitude, 2) == 1;
  return odd && a.hi().sign() < 0 ? Subtract(Real::From(0.0), raised, precision) : raised;
}

namespace {

Real AtanOf(const Real& a, int64_t precision) {
  return Real::Between(AtanAt(a.lo(), precision).low, AtanAt(a.hi(), precision).high);
}

/// `eighths` of a full turn.
Real Eighths(int eighths, int64_t precision) {
  return Multiply(Real::From(eighths * 0.25), PiReal(precision + 8), precision);
}

/// An infinite coordinate: a finite one next to it counts as zero.
Real AngleAtInfinity(const Real& y, const Real& x, int64_t precision) {
  const double up = y.is_domain() ? y.domain() : 0, right = x.is_domain() ? x.domain() : 0;
  if (std::isnan(up) || std::isnan(right)) return DomainValue(std::nan(""));
  if (up != 0) return Eighths((up > 0 ? 1 : -1) * (right > 0 ? 1 : right < 0 ? 3 : 2), precision);
  if (right > 0) return Real::From(0.0);
  if (y.lo().sign() < 0 && y.hi().sign() >= 0) return UndecidedValue();
  return Eighths(y.lo().sign() < 0 ? -4 : 4, precision);
}

}  // namespace

Real Atan2(const Real& y, const Real& x, int64_t precision) {
  if (y.is_undecided() || x.is_undecided()) return UndecidedValue();
  if (y.is_domain() || x.is_domain()) return AngleAtInfinity(y, x, precision);
  const int64_t p = precision + 16;
  if (y.is_point() && y.lo().is_zero() && x.lo().sign() >= 0) return Real::From(0.0);
  if (x.lo().sign() > 0) return AtanOf(Divide(y, x, p), precision);
  const bool above = y.lo().sign() > 0, below = y.hi().sign() < 0;
  if (above || below) return Subtract(Eighths(above ? 2 : -2, p), AtanOf(Divide(x, y, p), p), precision);
  if (y.is_point() && y.lo().is_zero() && x.hi().sign() < 0) return Eighths(4, precision);
  return UndecidedValue();
}

Real ConstantOf(Irrational constant, int64_t precision) {
  switch (constant) {
    case Irrational::kTwoOverSqrtPi:
      return Divide(Real::From(2.0), SquareRoot(PiReal(precision + 8), precision + 8), precision);
    case Irrational::kLn2:
      return Ln2Real(precision);
    case Irrational::kSqrtHalf:
      return SquareRoot(Real::From(0.5), precision);
    case Irrational::kSqrtTwoOverPi:
      return SquareRoot(Divide(Real::From(2.0), PiReal(precision + 8), precision + 8), precision);
  }
  ULPSCOPE_CHECK(false, "a constant without a value");
}

}  // namespace ulpscope
