// Real: an exact real number, or a proven enclosure of one, with directed rounding in every operation.
//
// Sums, differences and products of points stay points: exact, whatever the exponents. Division and square
// root give enclosures of `precision` bits; the evaluator doubles the precision where an enclosure is too
// wide to decide (Ziv). Values outside the reals (NaN, infinities) follow IEEE 754 and are carried as a
// binary64 domain value. A result that depends on an enclosure that is still too wide (a divisor that may be
// zero) is undecided, and so is everything computed from it.
#pragma once

#include <optional>

#include "harness/model/reference.h"
#include "oracles/exact/dyadic.h"

namespace ulpscope {

class Real {
 public:
  Real() = default;
  static Real From(double value);
  static Real From(Dyadic value);
  /// numerator / denominator as an enclosure of `precision` bits (a point if it is dyadic).
  static Real Ratio(int64_t numerator, int64_t denominator, int64_t precision);
  static Real Between(Dyadic lo, Dyadic hi);

  bool is_domain() const { return domain_.has_value(); }
  /// Nothing is known at this precision: an enclosure met a pole, or both sides of an edge.
  bool is_undecided() const { return undecided_; }
  double domain() const { return *domain_; }
  bool is_point() const { return point_; }
  const Dyadic& lo() const { return lo_; }
  const Dyadic& hi() const { return point_ ? lo_ : hi_; }

  /// (hi, lo, err, kind) as the oracle's contract requires. A value beyond binary64's range is an infinity by
  /// the rules of IEEE 754: kDomain.
  Reference ToReference() const;

 private:
  Dyadic lo_, hi_;
  bool point_ = true;
  bool undecided_ = false;
  std::optional<double> domain_;
  friend Real DomainValue(double value);
  friend Real UndecidedValue();
};

Real DomainValue(double value);
Real UndecidedValue();
Real Absolute(const Real& a);
Real Maximum(const Real& a, const Real& b);
Real Add(const Real& a, const Real& b, int64_t precision);
Real Subtract(const Real& a, const Real& b, int64_t precision);
Real Multiply(const Real& a, const Real& b, int64_t precision);
Real Divide(const Real& a, const Real& b, int64_t precision);
Real SquareRoot(const Real& a, int64_t precision);
/// Rounds into a format: a point if both ends round alike.
Real RoundTo(const Real& a, const FloatFormat& format);

}  // namespace ulpscope
