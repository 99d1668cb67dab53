// Interval images of functions.
#include "oracles/functions/enclose.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracles/functions/pair.h"

namespace ulpscope {
namespace {

/// A result is off by less than one double: half of one from rounding, far less from kFunctionError. A result
/// that is exact (exp(0)) stays a point. Overflow may be a finite number beyond every format.
Interval Around(TwoDoubles value) {
  if (std::isnan(value.hi)) return kEverything;
  if (std::isinf(value.hi))
    return value.hi > 0 ? Interval{.lo = std::numeric_limits<double>::max(), .hi = kInf}
                        : Interval{.lo = -kInf, .hi = -kInf};
  if (value.lo == 0 && (value.hi == 0 || value.hi == 1 || value.hi == -1 || value.hi == 0.5 || value.hi == 2))
    return {.lo = value.hi, .hi = value.hi};
  return {.lo = Down(value.hi), .hi = Up(value.hi)};
}

/// Smaller ones may be a difference that cancels.
constexpr double kLargeErfc = 0.4;

bool MayBeNoNumber(Interval a) { return std::isnan(a.lo) || std::isnan(a.hi); }

Interval At(NodeKind kind, double x) { return Around(PairFunction(kind, {.hi = x, .lo = 0})); }

}  // namespace

double FunctionSlack(NodeKind kind) {
  if (kind == NodeKind::kSqrt) return 1;
  if (kind == NodeKind::kErfc) return 64;
  if (kind == NodeKind::kPower) return 16;
  return kind == NodeKind::kRsqrt || IsFunction(kind) ? 8 : 0;
}

double FunctionReach(NodeKind kind, double value, const FloatFormat& format) {
  constexpr double kErf = 8, kRounded = 2;
  if (kind == NodeKind::kErfc && value >= kLargeErfc)
    return kRounded * Ulp(value, format) + kErf * Ulp(1 - value, format);
  return FunctionSlack(kind) * Ulp(value, format);
}

const FloatFormat& ComputeFormat(const PlanNode& node) {
  return node.dtype == DType::kFloat64 ? Binary64() : Binary32();
}

Interval FunctionImage(NodeKind kind, Interval a) {
  if (std::isnan(a.lo) || std::isnan(a.hi)) return kEverything;
  if (kind == NodeKind::kFastExp) {
    const Interval exact = FunctionImage(NodeKind::kExp, a);
    return {.lo = Down(exact.lo * (1 - kFastExpError)), .hi = Up(exact.hi * (1 + kFastExpError))};
  }
  if (kind == NodeKind::kSin || kind == NodeKind::kCos) {
    const double width = a.hi - a.lo;
    if (!(width < 1)) return std::isinf(a.lo) && a.lo == a.hi ? kEverything : Interval{.lo = -1, .hi = 1};
    const Interval at = At(kind, a.lo);
    // |f(x) - f(lo)| <= x - lo; the subtraction above may have rounded down.
    return width == 0 ? at
                      : Interval{.lo = std::max(Down(at.lo - Up(width)), -1.0),
                                 .hi = std::min(Up(at.hi + Up(width)), 1.0)};
  }
  if (kind == NodeKind::kCosh) {
    const Interval low = At(kind, a.lo), high = At(kind, a.hi);
    return {.lo = a.lo <= 0 && a.hi >= 0 ? 1 : std::min(low.lo, high.lo), .hi = std::max(low.hi, high.hi)};
  }
  if (kind == NodeKind::kErfc) return {.lo = At(kind, a.hi).lo, .hi = At(kind, a.lo).hi};
  // A logarithm whose argument may lie outside its domain may give anything below its upper end, or NaN.
  const double edge = kind == NodeKind::kLog || kind == NodeKind::kLog2 ? 0
                      : kind == NodeKind::kLog1p                        ? -1
                                                                        : -kInf;
  if (a.lo < edge) return kEverything;
  return {.lo = At(kind, a.lo).lo, .hi = At(kind, a.hi).hi};
}

/// Between two ends of one sign a power is monotone. Endpoints are off by far less than one double, as functions are.
Interval PowerImage(Interval a, double exponent) {
  if (std::isnan(a.lo) || std::isnan(a.hi)) return kEverything;
  const bool whole = exponent == std::trunc(exponent), spans = a.lo < 0 && a.hi > 0;
  if ((a.lo < 0 && !whole) || (a.lo <= 0 && a.hi >= 0 && exponent < 0)) return kEverything;
  const Interval low = Around(PairPower({.hi = a.lo, .lo = 0}, exponent)),
                 high = Around(PairPower({.hi = a.hi, .lo = 0}, exponent));
  if (MayBeNoNumber(low) || MayBeNoNumber(high)) return kEverything;
  const bool even = whole && std::fmod(std::fabs(exponent), 2) == 0;
  return {.lo = spans && even ? 0 : std::min(low.lo, high.lo), .hi = std::max(low.hi, high.hi)};
}

Interval AngleImage(Interval y, Interval x) {
  if (MayBeNoNumber(y) || MayBeNoNumber(x)) return kEverything;
  const Interval pi = Around(PairAngle(4));
  const Interval anywhere{.lo = -pi.hi, .hi = pi.hi};
  const bool above = y.lo > 0, below = y.hi < 0;
  if (std::isinf(y.lo) || std::isinf(y.hi) || std::isinf(x.lo) || std::isinf(x.hi)) return anywhere;
  if (y.lo == 0 && y.hi == 0 && x.lo > 0) return {.lo = 0, .hi = 0};
  if (!above && !below && x.lo <= 0)
    return x.lo == 0 && (x.hi > 0 || y.lo != 0 || y.hi != 0) ? Interval{.lo = -pi.hi / 2, .hi = pi.hi / 2}
                                                             : anywhere;
  // The corners of a box that does not hold the origin, nor lies on both sides of the cut, have the extreme angles.
  Interval angles{.lo = kInf, .hi = -kInf};
  for (const double up : {y.lo, y.hi}) {
    for (const double right : {x.lo, x.hi}) {
      const Interval corner = Around(PairAtan2({.hi = up, .lo = 0}, {.hi = right, .lo = 0}));
      angles = {.lo = std::min(angles.lo, corner.lo), .hi = std::max(angles.hi, corner.hi)};
    }
  }
  return angles;
}

Interval WithSlack(const PlanNode& node, Interval value) {
  const double units = FunctionSlack(node.kind);
  // Norms give their roots a slack of their own, in the format that their steps have.
  if (units == 0 || (node.inner && !IsFunction(node.kind)) || std::isnan(value.lo) || std::isnan(value.hi))
    return value;
  const FloatFormat& format = ComputeFormat(node);
  const auto widened = [&](double end, double sign) {
    if (!std::isfinite(end) || end == 0) return end;
    // Both ends of an interval that contains small values are widened by as much as a small value may be off.
    const double reach =
        value.lo < kLargeErfc ? units * Ulp(end, format) : FunctionReach(node.kind, end, format);
    const double moved = end + sign * reach;
    return sign < 0 ? Down(moved) : Up(moved);
  };
  // If the result overflows, so that a reciprocal may be zero or not, the largest finite number is as good.
  // Values below the normal range may be flushed to zero.
  const double normal = std::ldexp(1.0, format.emin);
  Interval wide{.lo = std::min(widened(value.lo, -1), format.max_finite),
                .hi = std::max(widened(value.hi, 1), -format.max_finite)};
  if (wide.lo > 0 && wide.lo < normal) wide.lo = 0;
  if (wide.hi < 0 && wide.hi > -normal) wide.hi = 0;
  return wide;
}

Interval ConstantInterval(Irrational constant) {
  const double value = PairConstant(constant).hi;
  return {.lo = Down(value), .hi = Up(value)};
}

}  // namespace ulpscope
