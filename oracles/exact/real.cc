// Enclosure arithmetic over exact binary numbers.
#include "oracles/exact/real.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace ulpscope {
namespace {

/// Points longer than this become enclosures, so that a chain of products cannot grow without end. It is
/// above what any sum of products of binary64 values needs (about 4,300 bits).
constexpr int64_t kPointLimit = 1 << 14;

Real Bounded(Dyadic lo, Dyadic hi, int64_t precision) {
  return Real::Between(Limit(lo, precision, Direction::kDown), Limit(hi, precision, Direction::kUp));
}

/// A real number next to an infinity counts as its sign, however large: its exact value is finite.
double DomainOf(const Real& a) { return a.is_domain() ? a.domain() : static_cast<double>(a.lo().sign()); }

bool MayBeZero(const Real& a) { return !a.is_domain() && a.lo().sign() <= 0 && a.hi().sign() >= 0; }

/// The IEEE rules for NaN and infinities do not depend on finite magnitudes, only on signs and zeros.
template <class F>
Real InDomain(const Real& a, const Real& b, F op) {
  for (const Real* operand : {&a, &b}) {
    if (operand->is_undecided() || (!operand->is_domain() && !operand->is_point() && MayBeZero(*operand)))
      return UndecidedValue();
  }
  return DomainValue(op(DomainOf(a), DomainOf(b)));
}

}  // namespace

Real DomainValue(double value) {
  Real real;
  real.domain_ = value;
  return real;
}

Real UndecidedValue() {
  Real real = DomainValue(std::numeric_limits<double>::quiet_NaN());
  real.undecided_ = true;
  return real;
}

Real Real::From(double value) {
  return std::isfinite(value) ? From(Dyadic::From(value)) : DomainValue(value);
}

Real Real::From(Dyadic value) {
  Real real;
  real.lo_ = std::move(value);
  return real;
}

Real Real::Between(Dyadic lo, Dyadic hi) {
  if (Compare(lo, hi) == 0) return From(std::move(lo));
  Real real;
  real.lo_ = std::move(lo);
  real.hi_ = std::move(hi);
  real.point_ = false;
  return real;
}

Real Real::Ratio(int64_t numerator, int64_t denominator, int64_t precision) {
  return Divide(From(Dyadic{.m = numerator, .e = 0}), From(Dyadic{.m = denominator, .e = 0}), precision);
}

Real Add(const Real& a, const Real& b, int64_t precision) {
  if (a.is_domain() || b.is_domain()) return InDomain(a, b, [](double x, double y) { return x + y; });
  if (a.is_point() && b.is_point()) {
    Dyadic sum = a.lo() + b.lo();
    if (sum.bits() <= kPointLimit) return Real::From(std::move(sum));
    return Bounded(sum, sum, precision);
  }
  return Bounded(a.lo() + b.lo(), a.hi() + b.hi(), precision);
}

Real Subtract(const Real& a, const Real& b, int64_t precision) {
  if (a.is_domain() || b.is_domain()) return InDomain(a, b, [](double x, double y) { return x - y; });
  if (b.is_point()) return Add(a, Real::From(Negate(b.lo())), precision);
  return Add(a, Real::Between(Negate(b.hi()), Negate(b.lo())), precision);
}

Real Multiply(const Real& a, const Real& b, int64_t precision) {
  if (a.is_domain() || b.is_domain()) return InDomain(a, b, [](double x, double y) { return x * y; });
  if (a.is_point() && b.is_point()) {
    Dyadic product = a.lo() * b.lo();
    if (product.bits() <= kPointLimit) return Real::From(std::move(product));
    return Bounded(product, product, precision);
  }
  std::array<Dyadic, 4> corners{a.lo() * b.lo(), a.lo() * b.hi(), a.hi() * b.lo(), a.hi() * b.hi()};
  const auto less = [](const Dyadic& x, const Dyadic& y) { return Compare(x, y) < 0; };
  const auto [low, high] = std::minmax_element(corners.begin(), corners.end(), less);
  return Bounded(*low, *high, precision);
}

Real Divide(const Real& a, const Real& b, int64_t precision) {
  if (a.is_domain() || b.is_domain()) return InDomain(a, b, [](double x, double y) { return x / y; });
  if (b.lo().sign() <= 0 && b.hi().sign() >= 0) {
    if (b.is_point()) return InDomain(a, b, [](double x, double y) { return x / y; });
    return UndecidedValue();
  }
  const std::array<std::pair<const Dyadic*, const Dyadic*>, 4> corners{
      {{&a.lo(), &b.lo()}, {&a.lo(), &b.hi()}, {&a.hi(), &b.lo()}, {&a.hi(), &b.hi()}}};
  std::optional<Dyadic> low, high;
  for (const auto& [x, y] : corners) {
    Dyadic down = Divide(*x, *y, precision, Direction::kDown);
    Dyadic up = Divide(*x, *y, precision, Direction::kUp);
    if (!low || Compare(down, *low) < 0) low = std::move(down);
    if (!high || Compare(up, *high) > 0) high = std::move(up);
    if (a.is_point() && b.is_point()) break;
  }
  return Real::Between(std::move(*low), std::move(*high));
}

Real SquareRoot(const Real& a, int64_t precision) {
  if (a.is_undecided()) return a;
  if (a.is_domain()) return DomainValue(std::sqrt(a.domain()));
  if (a.hi().sign() < 0) return DomainValue(std::numeric_limits<double>::quiet_NaN());
  if (a.lo().sign() < 0) return UndecidedValue();
  return Real::Between(Sqrt(a.lo(), precision, Direction::kDown), Sqrt(a.hi(), precision, Direction::kUp));
}

Real Absolute(const Real& a) {
  if (a.is_undecided()) return a;
  if (a.is_domain()) return DomainValue(std::fabs(a.domain()));
  if (a.lo().sign() >= 0) return a;
  if (a.hi().sign() <= 0) return Real::Between(Negate(a.hi()), Negate(a.lo()));
  const Dyadic below = Negate(a.lo());
  return Real::Between(Dyadic{}, Compare(below, a.hi()) > 0 ? below : a.hi());
}

Real Maximum(const Real& a, const Real& b) {
  if (a.is_undecided() || (b.is_domain() && std::isnan(b.domain()) && !b.is_undecided()))
    return b.is_domain() && std::isnan(b.domain()) ? b : a;
  if (a.is_domain() && std::isnan(a.domain())) return a;
  if (b.is_undecided()) return b;
  if (a.is_domain()) return a.domain() > 0 ? a : b;
  if (b.is_domain()) return b.domain() > 0 ? b : a;
  return Real::Between(Compare(a.lo(), b.lo()) >= 0 ? a.lo() : b.lo(),
                       Compare(a.hi(), b.hi()) >= 0 ? a.hi() : b.hi());
}

Real RoundTo(const Real& a, const FloatFormat& format) {
  if (a.is_domain()) return a;
  const double low = RoundTo(a.lo(), format);
  const double high = a.is_point() ? low : RoundTo(a.hi(), format);
  if (!std::isfinite(low) || !std::isfinite(high)) return low == high ? DomainValue(low) : UndecidedValue();
  return Real::Between(Dyadic::From(low), Dyadic::From(high));
}

Reference Real::ToReference() const {
  if (undecided_)
    return {.hi = *domain_,
            .lo = 0,
            .err = std::numeric_limits<double>::infinity(),
            .kind = ReferenceKind::kUndecided};
  if (is_domain()) return {.hi = *domain_, .lo = 0, .err = 0, .kind = ReferenceKind::kDomain};
  int rest = 0;
  if (point_) {
    const TwoDoubles two = ToTwoDoubles(lo_, &rest);
    if (!std::isfinite(two.hi)) return {.hi = two.hi, .lo = 0, .err = 0, .kind = ReferenceKind::kDomain};
    if (rest == 0) return {.hi = two.hi, .lo = two.lo, .err = 0, .kind = ReferenceKind::kExact};
    const double err = std::max(std::fabs(two.lo) * 0x1p-53, std::numeric_limits<double>::denorm_min());
    return {.hi = two.hi, .lo = two.lo, .err = err, .kind = ReferenceKind::kWide};
  }
  const TwoDoubles two = ToTwoDoubles(lo_, &rest);
  if (!std::isfinite(two.hi)) {
    const double other = ToTwoDoubles(hi_, &rest).hi;
    return {.hi = two.hi,
            .lo = 0,
            .err = 0,
            .kind = other == two.hi ? ReferenceKind::kDomain : ReferenceKind::kUndecided};
  }
  const Dyadic centre = Dyadic::From(two.hi) + Dyadic::From(two.lo);
  const Dyadic above = hi_ - centre, below = centre - lo_;
  int ignored;
  const double wide =
      std::max(std::fabs(ToTwoDoubles(above, &ignored).hi), std::fabs(ToTwoDoubles(below, &ignored).hi));
  const double err = std::nextafter(wide, std::numeric_limits<double>::infinity());
  const bool decided = err <= std::fabs(two.hi) * 0x1p-80 || err < 0x1p-1000;
  return {.hi = two.hi,
          .lo = two.lo,
          .err = err,
          .kind = decided ? ReferenceKind::kCertified : ReferenceKind::kUndecided};
}

}  // namespace ulpscope
