// Exact evaluation of elementary nodes.
#include "oracles/exact_arithmetic.h"

#include <array>

#include "harness/base/check.h"
#include "oracles/evaluate.h"
#include "oracles/functions/exact.h"

namespace ulpscope {

Real ExactArithmetic::Input(const PlanNode&, int, const TensorData& data, int64_t index) const {
  return Real::From(data.At(index));
}

Real ExactArithmetic::Constant(const PlanNode& node) const {
  if (const Irrational* irrational = node.If<Irrational>()) return ConstantOf(*irrational, precision_);
  if (const IntegerRatio* ratio = node.If<IntegerRatio>())
    return Real::Ratio(ratio->numerator, ratio->denominator, precision_);
  return Real::From(node.Get<DoubleNumber>().value);
}

std::optional<int64_t> ExactArithmetic::Whole(const Real& number) const {
  if (number.is_domain() || !number.is_point()) return std::nullopt;
  return static_cast<int64_t>(number.ToReference().hi);
}

Real ExactArithmetic::Count(const PlanNode& node, int64_t index) const {
  const auto& [start, step] = node.Get<Progression>();
  return Add(Real::From(start),
             Multiply(Real::From(step), Real::From(static_cast<double>(index)), precision_), precision_);
}

Real ExactArithmetic::Elementwise(const PlanNode& node, int, std::span<const Real> args,
                                  std::span<const Real>) const {
  switch (node.kind) {
    case NodeKind::kAdd:
      return Add(args[0], args[1], precision_);
    case NodeKind::kSub:
      return Subtract(args[0], args[1], precision_);
    case NodeKind::kMul:
      return Multiply(args[0], args[1], precision_);
    case NodeKind::kDiv:
      return Divide(args[0], args[1], precision_);
    case NodeKind::kNeg:
      return Subtract(Real::From(0.0), args[0], precision_);
    case NodeKind::kSqrt:
      return SquareRoot(args[0], precision_);
    case NodeKind::kRsqrt:
      return Divide(Real::From(1.0), SquareRoot(args[0], precision_), precision_);
    case NodeKind::kRelu:
      if (args[0].is_domain()) return args[0];
      if (args[0].hi().sign() <= 0) return Real::From(0.0);
      return args[0].lo().sign() >= 0 ? args[0] : Real::Between(Dyadic{}, args[0].hi());
    case NodeKind::kCast: {
      const FloatFormat* format = AskedFormat(node);
      return format == nullptr ? args[0] : RoundTo(args[0], *format);
    }
    case NodeKind::kStore:
      return args[0];
    case NodeKind::kAbs:
      return Absolute(args[0]);
    case NodeKind::kMaximum: {
      Real most = args[0];
      for (const Real& other : args.subspan(1)) most = Maximum(most, other);
      return most;
    }
    case NodeKind::kMinimum: {
      Real least = args[0];
      for (const Real& other : args.subspan(1)) {
        const std::array<Real, 2> both{least, other};
        least = ChoiceOf(NodeKind::kSmaller, both);
      }
      return least;
    }
    case NodeKind::kProduct: {
      Real product = Real::From(1.0);
      for (const Real& other : args) product = Multiply(product, other, precision_);
      return product;
    }
    case NodeKind::kPower:
      if (!args[1].is_point() || args[1].is_domain()) return UndecidedValue();
      return Power(args[0], args[1].ToReference().hi, precision_);
    case NodeKind::kAtan2:
      return Atan2(args[0], args[1], precision_);
    default:
      if (RoundsNothing(node.kind)) return ChoiceOf(node, args);
      if (IsFunction(node.kind)) return TabulatedFunction(node.kind, args[0], precision_);
      break;
  }
  ULPSCOPE_CHECK(false, "not an elementwise node");
}

Real ExactArithmetic::Contract(const PlanNode& node, int, int64_t, std::span<const Real> a,
                               std::span<const Real> b, const Real* addend) const {
  Real sum = Real::From(0.0);
  for (size_t k = 0; k < a.size(); ++k) sum = Add(sum, Multiply(a[k], b[k], precision_), precision_);
  const auto& [m, n, length, alpha, beta] = node.Get<Contraction>();
  if (alpha != 1) sum = Multiply(Real::From(alpha), sum, precision_);
  if (addend != nullptr) sum = Add(sum, Multiply(Real::From(beta), *addend, precision_), precision_);
  return sum;
}

Real ExactArithmetic::Reduce(const PlanNode&, int, int64_t, std::span<const Real> terms) const {
  Real sum = Real::From(0.0);
  for (const Real& term : terms) sum = Add(sum, term, precision_);
  return sum;
}

}  // namespace ulpscope
