// Bit-exact emulation of elementary nodes at a precision model.
#include "oracles/emulated.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "harness/base/hash.h"
#include "harness/num/error_free.h"
#include "oracles/dot/sum.h"
#include "oracles/functions/enclose.h"
#include "oracles/functions/pair.h"

namespace ulpscope {
namespace {

/// In units in the last place of the format that computes it.
double UnitsOf(const PlanNode& node, TwoDoubles value) {
  const FloatFormat& format = ComputeFormat(node);
  return FunctionReach(node.kind, value.hi, format) / Ulp(value.hi, format);
}

/// One of the values that an implementation may give for f(argument). No two implementations agree, so the
/// error is drawn from the argument's bits. A third of the variants is biased to either side, as polynomials
/// are.
TwoDoubles Disturbed(const PlanNode& node, double argument, TwoDoubles value, int inexact, double most) {
  if (inexact == 0 || !std::isfinite(value.hi) || value.lo == 0) return value;
  const uint64_t z =
      MixBits(std::bit_cast<uint64_t>(argument) + kGoldenGamma * static_cast<uint64_t>(inexact));
  const double even = static_cast<double>(z >> 11) * 0x1p-52 - 1;
  const double lean = inexact / 4 % 3 - 1;
  return Add(value, {.hi = (even + lean) / 2 * std::min(std::ldexp(1.0, inexact % 4), most) *
                           Ulp(value.hi, ComputeFormat(node)),
                     .lo = 0});
}

}  // namespace

TwoDoubles EmulatedArithmetic::Stored(int id, TwoDoubles value) const {
  if (id == unstored_) return value;
  for (const auto& spec : binding_->store[static_cast<size_t>(id)]) {
    if (spec.format != nullptr) value = {.hi = spec.Apply(value), .lo = 0};
  }
  return value;
}

TwoDoubles EmulatedArithmetic::Input(const PlanNode&, int, const TensorData& data, int64_t index) const {
  return {.hi = data.At(index), .lo = 0};
}

TwoDoubles EmulatedArithmetic::Constant(const PlanNode& node) const {
  if (const Irrational* irrational = node.If<Irrational>()) return PairConstant(*irrational);
  if (const IntegerRatio* ratio = node.If<IntegerRatio>())
    return Divide({.hi = static_cast<double>(ratio->numerator), .lo = 0},
                  {.hi = static_cast<double>(ratio->denominator), .lo = 0});
  return {.hi = ConstantValue(node, *binding_), .lo = 0};
}

TwoDoubles EmulatedArithmetic::Count(const PlanNode& node, int64_t index) const {
  const auto& [start, step] = node.Get<Progression>();
  return Add({.hi = start, .lo = 0},
             Multiply({.hi = step, .lo = 0}, {.hi = static_cast<double>(index), .lo = 0}));
}

TwoDoubles EmulatedArithmetic::Computed(const PlanNode& node, std::span<const TwoDoubles> args) const {
  const auto disturbed = [&](const TwoDoubles& value, double units) {
    return Disturbed(node, args[0].hi, value, inexact_, units);
  };
  switch (node.kind) {
    case NodeKind::kAdd:
      return Add(args[0], args[1]);
    case NodeKind::kSub:
      return Add(args[0], Negate(args[1]));
    case NodeKind::kMul:
      return Multiply(args[0], args[1]);
    case NodeKind::kDiv:
      return Divide(args[0], args[1]);
    case NodeKind::kNeg:
      return Negate(args[0]);
    case NodeKind::kSqrt:
      return SquareRoot(args[0]);
    case NodeKind::kRsqrt:
      return Divide({.hi = 1, .lo = 0}, SquareRoot(args[0]));
    case NodeKind::kRelu:
      return args[0].hi > 0 ? args[0] : TwoDoubles{};
    case NodeKind::kAbs:
      return std::signbit(args[0].hi) ? Negate(args[0]) : args[0];
    case NodeKind::kMaximum: {
      TwoDoubles value = args[0];
      for (const TwoDoubles& other : args) {
        if (std::isnan(other.hi) || other.hi > value.hi || (other.hi == value.hi && other.lo > value.lo))
          value = other;
      }
      return value;
    }
    case NodeKind::kMinimum: {
      TwoDoubles value = args[0];
      for (const TwoDoubles& other : args) {
        const std::array<TwoDoubles, 2> both{value, other};
        value = ChoiceOf(NodeKind::kSmaller, both);
      }
      return value;
    }
    case NodeKind::kProduct: {
      TwoDoubles value{.hi = 1, .lo = 0};
      for (const TwoDoubles& other : args) {
        value = Multiply(value, other);
        if (!Acc().exact()) value = {.hi = StoreIn(Acc(), value), .lo = 0};
      }
      return value;
    }
    case NodeKind::kPower:
      return disturbed(PairPower(args[0], args[1].hi), FunctionSlack(node.kind));
    case NodeKind::kAtan2:
      return disturbed(PairAtan2(args[0], args[1]), FunctionSlack(node.kind));
    default:
      if (!IsFunction(node.kind)) return RoundsNothing(node.kind) ? ChoiceOf(node, args) : args[0];
      const TwoDoubles value = PairFunction(node.kind, args[0]);
      return disturbed(value, UnitsOf(node, value));
  }
}

TwoDoubles EmulatedArithmetic::Elementwise(const PlanNode& node, int id, std::span<const TwoDoubles> args,
                                           std::span<const TwoDoubles>) const {
  TwoDoubles value = Computed(node, args);
  // Steps that have other algebraic forms are off as functions are, in the format that the op computes in;
  // others are modelled in one form.
  const bool wide = !Acc().exact() && *Acc().format == ComputeFormat(node);
  const bool other_forms = node.slack.size() == 1 && node.slack[0] == id && !IsFunction(node.kind);
  if (inexact_ != 0 && wide && other_forms)
    value = Disturbed(node, args[0].hi, value, inexact_, node.slack_factor / 4);
  if (node.inner && !Acc().exact() && id != unstored_) value = {.hi = StoreIn(Acc(), value), .lo = 0};
  return Stored(id, value);
}

const SumOrder& EmulatedArithmetic::Order() const {
  static const SumOrder sequential;
  return order_ == nullptr ? sequential : *order_;
}

/// `aligned`: the accumulator needs the exponent of the product.
SumTerm EmulatedArithmetic::OneProduct(const std::array<RoundSpec, 2>& in, TwoDoubles a, TwoDoubles b,
                                       bool aligned) const {
  SumTerm term;
  // An operand that no rounding touched may carry a tail: an intermediate that its model keeps exact.
  const TwoDoubles x = in[0].none() ? a : TwoDoubles{.hi = in[0].Apply(a.hi), .lo = 0};
  const TwoDoubles y = in[1].none() ? b : TwoDoubles{.hi = in[1].Apply(b.hi), .lo = 0};
  if (aligned) term = TermOf(x.hi, y.hi);
  term.value = Multiply(x, y);
  if (binding_->prod.format != nullptr) term.value = {.hi = binding_->prod.Apply(term.value), .lo = 0};
  return term;
}

std::vector<std::vector<SumTerm>> EmulatedArithmetic::PassesOf(const std::array<RoundSpec, 2>& in,
                                                               const RoundSpec& prod,
                                                               std::span<const double> a,
                                                               std::span<const double> b) {
  std::vector<std::vector<SumTerm>> passes(1);
  passes[0].reserve(a.size());
  const bool split = in[0].pieces > 1 || in[1].pieces > 1;
  for (size_t k = 0; k < a.size(); ++k) {
    if (b.empty() || !split) {
      const double x = in[0].Apply(a[k]), y = b.empty() ? 1 : in[1].Apply(b[k]);
      SumTerm term = TermOf(x, y);
      if (prod.format != nullptr) term.value = {.hi = prod.Apply(term.value), .lo = 0};
      passes[0].push_back(term);
      continue;
    }
    const Products products = ulpscope::Multiply(in[0], in[1], prod, a[k], b[k]);
    passes.resize(static_cast<size_t>(products.count));
    for (size_t pass = 0; pass < passes.size(); ++pass) {
      SumTerm term = TermOf(products.a[pass], products.b[pass]);
      term.value = products.value[pass];
      passes[pass].push_back(term);
    }
  }
  return passes;
}

TwoDoubles EmulatedArithmetic::SumPasses(const AccSpec& acc, const SumOrder& order,
                                         const std::vector<std::vector<SumTerm>>& passes,
                                         const TwoDoubles* addend) {
  TwoDoubles total;
  for (size_t pass = 0; pass < passes.size(); ++pass) {
    const TwoDoubles sum = SumInOrder(acc, order, passes[pass], pass + 1 == passes.size() ? addend : nullptr);
    total = pass == 0     ? sum
            : acc.exact() ? Add(total, sum)
                          : TwoDoubles{.hi = AddPartials(acc, total.hi, sum.hi), .lo = 0};
  }
  return total;
}

std::optional<TwoDoubles> EmulatedArithmetic::Known(const PlanNode& node, int id, int64_t index,
                                                    const TwoDoubles* addend) const {
  const Passes* passes = cache_->terms.Find(*binding_, id, index);
  return passes == nullptr ? std::nullopt : std::optional(SumOf(node, id, *passes, addend));
}

TwoDoubles EmulatedArithmetic::Contract(const PlanNode& node, int id, int64_t index,
                                        std::span<const TwoDoubles> a, std::span<const TwoDoubles> b,
                                        const TwoDoubles* addend) const {
  const auto& in = binding_->in[static_cast<size_t>(id)];
  const bool shared = cache_->fixed[static_cast<size_t>(id)];
  Passes passes(1);
  if (in[0].pieces == 1 && in[1].pieces == 1) {
    passes[0].reserve(a.size());
    const bool aligned = shared || Acc().block > 0;
    for (size_t k = 0; k < a.size(); ++k) passes[0].push_back(OneProduct(in, a[k], b[k], aligned));
  } else {
    std::vector<double> x, y;
    for (const TwoDoubles& value : a) x.push_back(value.hi);
    for (const TwoDoubles& value : b) y.push_back(value.hi);
    passes = PassesOf(in, binding_->prod, x, y);
  }
  const TwoDoubles total = SumOf(node, id, passes, addend);
  if (shared) cache_->terms.Keep(*binding_, id, index, std::move(passes));
  return total;
}

TwoDoubles EmulatedArithmetic::SumOf(const PlanNode& node, int id, const Passes& passes,
                                     const TwoDoubles* addend) const {
  if (node.kind != NodeKind::kContract) return Stored(id, SumPasses(Acc(), Order(), passes, nullptr));
  const auto& [m, n, length, alpha, beta] = node.Get<Contraction>();
  TwoDoubles scaled;
  const bool added = addend != nullptr && alpha == 1;
  if (added) scaled = ulpscope::Multiply(TwoDoubles{.hi = beta, .lo = 0}, *addend);
  const TwoDoubles total = SumPasses(Acc(), Order(), passes, added ? &scaled : nullptr);
  if (alpha == 1) return Stored(id, total);
  TwoDoubles sum = ulpscope::Multiply(TwoDoubles{.hi = alpha, .lo = 0}, total);
  if (!Acc().exact()) sum = {.hi = StoreIn(Acc(), sum), .lo = 0};
  if (addend != nullptr) {
    sum = Add(sum, ulpscope::Multiply(TwoDoubles{.hi = beta, .lo = 0}, *addend));
    if (!Acc().exact()) sum = {.hi = StoreIn(Acc(), sum), .lo = 0};
  }
  return Stored(id, sum);
}

TwoDoubles EmulatedArithmetic::Reduce(const PlanNode& node, int id, int64_t index,
                                      std::span<const TwoDoubles> terms) const {
  Passes passes(1);
  std::vector<SumTerm>& summands = passes[0];
  summands.reserve(terms.size());
  const RoundSpec& in = binding_->in[static_cast<size_t>(id)][0];
  for (const TwoDoubles& whole : terms) {
    const TwoDoubles term = in.none() ? whole : TwoDoubles{.hi = in.Apply(whole), .lo = 0};
    SumTerm summand = TermOf(term.hi, 1);
    summand.value = term;
    summands.push_back(summand);
  }
  const TwoDoubles total = SumOf(node, id, passes, nullptr);
  if (cache_->fixed[static_cast<size_t>(id)]) cache_->terms.Keep(*binding_, id, index, std::move(passes));
  return total;
}

}  // namespace ulpscope
