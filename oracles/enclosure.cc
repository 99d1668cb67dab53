// Interval evaluation of elementary nodes at a precision model.
#include "oracles/enclosure.h"

#include <algorithm>
#include <cmath>

#include "oracles/functions/enclose.h"
#include "oracles/interval_math.h"

namespace ulpscope {

double ConstantValue(const PlanNode& node, const Binding& binding) {
  const auto& [value, scalar] = node.Get<DoubleNumber>();
  const auto rounding = scalar.empty() ? binding.scalars.end() : binding.scalars.find(scalar);
  return rounding == binding.scalars.end() ? value : rounding->second.Apply(value);
}

Interval EnclosureArithmetic::Stored(int id, Interval value) const {
  const bool special = value.special;
  if (HasNan(value)) return kEverything;
  for (const auto& spec : binding_->store[static_cast<size_t>(id)]) value = Rounded(spec, value);
  value.special = special;
  return HasNan(value) ? kEverything : value;
}

Interval EnclosureArithmetic::Input(const PlanNode&, int, const TensorData& data, int64_t index) const {
  const double value = data.At(index);
  return {.lo = value, .hi = value};
}

Interval EnclosureArithmetic::Constant(const PlanNode& node) const {
  if (const Irrational* irrational = node.If<Irrational>()) return ConstantInterval(*irrational);
  if (const IntegerRatio* ratio = node.If<IntegerRatio>()) {
    const auto n = static_cast<double>(ratio->numerator), d = static_cast<double>(ratio->denominator);
    return Divide(Interval{.lo = n, .hi = n}, Interval{.lo = d, .hi = d});
  }
  const double value = ConstantValue(node, *binding_);
  return {.lo = value, .hi = value};
}

Interval EnclosureArithmetic::Nowhere() const { return kEverything; }

Interval EnclosureArithmetic::Count(const PlanNode& node, int64_t index) const {
  const auto& [start, step] = node.Get<Progression>();
  const auto place = static_cast<double>(index);
  return {.lo = AddDown(start, MulDown(step, place)), .hi = AddUp(start, MulUp(step, place))};
}

/// A product that stays in the accumulator's normal range for every order of its factors.
Interval EnclosureArithmetic::Product(std::span<const Interval> factors) const {
  const FloatFormat& format = binding_->acc.exact() ? Binary64() : *binding_->acc.format;
  Interval product{.lo = 1, .hi = 1};
  int most = 0, least = 0;
  for (const Interval& factor : factors) {
    product = Multiply(product, factor);
    const double low =
        factor.lo <= 0 && factor.hi >= 0 ? 0 : std::min(std::fabs(factor.lo), std::fabs(factor.hi));
    if (!std::isfinite(Magnitude(factor))) return kEverything;
    if (Magnitude(factor) > 1) most += std::ilogb(Magnitude(factor)) + 1;
    if (low != 0 && low < 1) least += std::ilogb(low);
  }
  if (most >= format.emax || least <= format.emin) return kEverything;
  return product;
}

namespace {

/// The least and the greatest of several intervals, bound by bound.
template <class Pick>
Interval Picked(std::span<const Interval> args, const Pick& pick) {
  Interval value = args[0];
  for (const Interval& other : args)
    value = HasNan(other) || HasNan(value)
                ? kEverything
                : Interval{.lo = pick(value.lo, other.lo), .hi = pick(value.hi, other.hi)};
  return value;
}

/// Every result of a step on elements of these intervals, before anything is rounded.
Interval Image(NodeKind kind, std::span<const Interval> args) {
  switch (kind) {
    case NodeKind::kAdd:
      return {.lo = AddDown(args[0].lo, args[1].lo), .hi = AddUp(args[0].hi, args[1].hi)};
    case NodeKind::kSub:
      return {.lo = AddDown(args[0].lo, -args[1].hi), .hi = AddUp(args[0].hi, -args[1].lo)};
    case NodeKind::kMul:
      return Multiply(args[0], args[1]);
    case NodeKind::kDiv:
      return Divide(args[0], args[1]);
    case NodeKind::kNeg:
      return {.lo = -args[0].hi, .hi = -args[0].lo};
    case NodeKind::kSqrt:
      return SquareRoot(args[0]);
    case NodeKind::kRsqrt:
      return Divide(Interval{.lo = 1, .hi = 1}, SquareRoot(args[0]));
    case NodeKind::kRelu:
      return {.lo = std::max(args[0].lo, 0.0), .hi = std::max(args[0].hi, 0.0)};
    case NodeKind::kAbs:
      return {.lo = args[0].lo > 0 ? args[0].lo : std::max(-args[0].hi, 0.0), .hi = Magnitude(args[0])};
    case NodeKind::kMaximum:
      return Picked(args, [](double a, double b) { return std::max(a, b); });
    case NodeKind::kMinimum:
      return Picked(args, [](double a, double b) { return std::min(a, b); });
    case NodeKind::kPower:
      return args[1].lo == args[1].hi ? PowerImage(args[0], args[1].lo) : kEverything;
    case NodeKind::kAtan2:
      return AngleImage(args[0], args[1]);
    default:
      return IsFunction(kind) ? FunctionImage(kind, args[0]) : args[0];
  }
}

}  // namespace

Interval EnclosureArithmetic::Elementwise(const PlanNode& node, int id, std::span<const Interval> args,
                                          std::span<const Interval> slack) const {
  if (RoundsNothing(node.kind)) return Stored(id, ChoiceOf(node, args));
  if (std::ranges::any_of(args, [](const Interval& arg) { return arg.special; })) return kEverything;
  Interval value = node.kind == NodeKind::kProduct ? Product(args) : Image(node.kind, args);
  if (node.kind == NodeKind::kProduct && value.special) return kEverything;
  value = WithSlack(node, value);
  if (node.inner && !binding_->acc.exact()) {
    const AccSpec& acc = binding_->acc;
    // Narrow formats are modelled in this one algebraic form; wide ones in every form that the op's author
    // names.
    if (node.slack_factor > 0 && acc.format->precision >= 24) {
      double magnitude = 0;
      for (const Interval& other : slack) magnitude += Magnitude(other);
      for (const int other : node.slack) {
        if (other == id) magnitude += Magnitude(value);
      }
      const double widen = node.slack_factor * UnitOf(acc) * magnitude * (1 + 0x1p-20);
      value = {.lo = AddDown(value.lo, -widen), .hi = AddUp(value.hi, widen)};
    }
    if (!HasNan(value))
      value = {.lo = StoreIn(acc, {.hi = value.lo, .lo = 0}), .hi = StoreIn(acc, {.hi = value.hi, .lo = 0})};
  }
  return Stored(id, value);
}

}  // namespace ulpscope
