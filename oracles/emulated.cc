// Bit-exact emulation of elementary nodes at a precision model.
#include "oracles/emulated.h"

#include <algorithm>
#include <cmath>

#include "oracles/error_free.h"

namespace ulpscope {
namespace {

std::vector<SumOrder> MakeOrders(bool addend_last) {
  using Tree = SumOrder::Tree;
  std::vector<SumOrder> orders{
      {.tree = Tree::kSequential, .name = "sequential"},          {.tree = Tree::kReversed, .name = "reversed"},
      {.tree = Tree::kLanes, .width = 2, .name = "lanes2"},       {.tree = Tree::kLanes, .width = 4, .name = "lanes4"},
      {.tree = Tree::kLanes, .width = 8, .name = "lanes8"},       {.tree = Tree::kLanes, .width = 16, .name = "lanes16"},
      {.tree = Tree::kLanes, .width = 32, .name = "lanes32"},     {.tree = Tree::kPairwise, .name = "pairwise"},
      {.tree = Tree::kBlocks, .width = 4, .name = "blocks4"},     {.tree = Tree::kBlocks, .width = 16, .name = "blocks16"},
      {.tree = Tree::kOddFirstPairs, .name = "odd_first_pairs"},  {.tree = Tree::kHalves, .name = "halves"}};
  if (addend_last) {
    const size_t count = orders.size();
    for (size_t i = 0; i < count; ++i) {
      SumOrder last = orders[i];
      last.addend_last = true;
      last.name += "+c";
      orders.push_back(last);
    }
  }
  return orders;
}

/// Partial sums in accumulator `acc`.
class Accumulation {
 public:
  explicit Accumulation(const AccSpec& acc) : acc_(acc) {}

  double Sequential(std::span<const TwoDoubles> terms, double start = 0) const {
    double sum = start;
    for (const TwoDoubles& term : terms) sum = acc_.Step(sum, term);
    return sum;
  }

  double Combine(std::vector<double> partial) const {
    // Lanes are folded in halves, as vector reductions do.
    while (partial.size() > 1) {
      const size_t half = (partial.size() + 1) / 2;
      for (size_t i = 0; i + half < partial.size(); ++i) partial[i] = Plus(partial[i], partial[i + half]);
      partial.resize(half);
    }
    return partial.empty() ? 0 : partial[0];
  }

  double Lanes(std::span<const TwoDoubles> terms, size_t width) const {
    std::vector<double> lanes(std::min(width, terms.size()), 0.0);
    for (size_t k = 0; k < terms.size(); ++k) lanes[k % lanes.size()] = acc_.Step(lanes[k % lanes.size()], terms[k]);
    return Combine(std::move(lanes));
  }

  double Pairwise(std::span<const TwoDoubles> terms) const {
    if (terms.empty()) return 0;
    if (terms.size() == 1) return acc_.Step(0, terms[0]);
    const size_t half = terms.size() / 2;
    return Plus(Pairwise(terms.first(half)), Pairwise(terms.subspan(half)));
  }

  double Blocks(std::span<const TwoDoubles> terms, size_t width) const {
    double sum = 0;
    for (size_t k = 0; k < terms.size(); k += width) sum = Plus(sum, Sequential(terms.subspan(k, std::min(width, terms.size() - k))));
    return sum;
  }

  /// Pairs with the second element first, as VDPBF16PS does.
  double OddFirst(std::span<const TwoDoubles> terms, double start) const {
    double sum = start;
    for (size_t k = 0; k < terms.size(); k += 2) {
      if (k + 1 < terms.size()) sum = acc_.Step(sum, terms[k + 1]);
      sum = acc_.Step(sum, terms[k]);
    }
    return sum;
  }

  double Plus(double a, double b) const { return acc_.Step(a, {.hi = b, .lo = 0}); }

 private:
  AccSpec acc_;
};

}  // namespace

const std::vector<SumOrder>& SumOrders(AddendOrders addend) {
  static const std::vector<SumOrder> plain = MakeOrders(false), both = MakeOrders(true);
  return addend == AddendOrders::kNone ? plain : both;
}

TwoDoubles EmulatedArithmetic::Stored(int id, TwoDoubles value) const {
  if (id == unstored_) return value;
  for (const auto& spec : binding_->store[static_cast<size_t>(id)]) {
    if (spec.format != nullptr) value = {.hi = spec.Apply(value), .lo = 0};
  }
  return value;
}

TwoDoubles EmulatedArithmetic::Input(const PlanNode&, int, const TensorData& data, int64_t index) const { return {.hi = data.At(index), .lo = 0}; }

TwoDoubles EmulatedArithmetic::Constant(const PlanNode& node) const {
  if (node.denominator == 0) return {.hi = ConstantValue(node, *binding_), .lo = 0};
  return Divide({.hi = static_cast<double>(node.numerator), .lo = 0}, {.hi = static_cast<double>(node.denominator), .lo = 0});
}

TwoDoubles EmulatedArithmetic::Elementwise(const PlanNode& node, int id, std::span<const TwoDoubles> args, std::span<const TwoDoubles>) const {
  TwoDoubles value;
  switch (node.kind) {
    case NodeKind::kAdd: value = Add(args[0], args[1]); break;
    case NodeKind::kSub: value = Add(args[0], Negate(args[1])); break;
    case NodeKind::kMul: value = Multiply(args[0], args[1]); break;
    case NodeKind::kDiv: value = Divide(args[0], args[1]); break;
    case NodeKind::kNeg: value = Negate(args[0]); break;
    case NodeKind::kSqrt: value = SquareRoot(args[0]); break;
    case NodeKind::kRsqrt: value = Divide({.hi = 1, .lo = 0}, SquareRoot(args[0])); break;
    case NodeKind::kRelu: value = args[0].hi > 0 ? args[0] : TwoDoubles{}; break;
    default: value = args[0]; break;
  }
  if (node.inner && !Acc().exact() && id != unstored_) value = {.hi = Acc().Store(value), .lo = 0};
  return Stored(id, value);
}

TwoDoubles EmulatedArithmetic::Sum(std::span<const TwoDoubles> terms, const TwoDoubles* addend) const {
  const AccSpec acc = Acc();
  if (acc.exact()) {
    TwoDoubles sum;
    for (const TwoDoubles& term : terms) sum = Add(sum, term);
    return addend == nullptr ? sum : Add(sum, *addend);
  }
  const Accumulation run(acc);
  const bool first = addend != nullptr && !order_->addend_last;
  const double start = first ? acc.Store(*addend) : 0;
  double sum = 0;
  bool started = false;
  switch (order_->tree) {
    case SumOrder::Tree::kSequential: sum = run.Sequential(terms, start); started = true; break;
    case SumOrder::Tree::kReversed: {
      const std::vector<TwoDoubles> reversed(terms.rbegin(), terms.rend());
      sum = run.Sequential(reversed, start);
      started = true;
      break;
    }
    case SumOrder::Tree::kOddFirstPairs: sum = run.OddFirst(terms, start); started = true; break;
    case SumOrder::Tree::kLanes: sum = run.Lanes(terms, static_cast<size_t>(order_->width)); break;
    case SumOrder::Tree::kPairwise: sum = run.Pairwise(terms); break;
    case SumOrder::Tree::kBlocks: sum = run.Blocks(terms, static_cast<size_t>(order_->width)); break;
    case SumOrder::Tree::kHalves: {
      const size_t half = terms.size() / 2;
      sum = run.Plus(run.Sequential(terms.first(half)), run.Sequential(terms.subspan(half)));
      break;
    }
  }
  if (addend != nullptr && !(first && started)) sum = acc.Step(sum, *addend);
  return {.hi = sum, .lo = 0};
}

TwoDoubles EmulatedArithmetic::Contract(const PlanNode& node, int id, int64_t, std::span<const TwoDoubles> a, std::span<const TwoDoubles> b, const TwoDoubles* addend) const {
  std::vector<TwoDoubles> products(a.size());
  const auto& in = binding_->in[static_cast<size_t>(id)];
  const auto rounded = [](const RoundSpec& spec, TwoDoubles value) { return spec.format == nullptr ? value : TwoDoubles{.hi = spec.Apply(value), .lo = 0}; };
  for (size_t k = 0; k < a.size(); ++k) products[k] = rounded(binding_->prod, Multiply(rounded(in[0], a[k]), rounded(in[1], b[k])));
  if (addend == nullptr && node.alpha == 1) return Stored(id, Sum(products, nullptr));
  if (node.alpha == 1) {
    const TwoDoubles scaled = Multiply({.hi = node.beta, .lo = 0}, *addend);
    return Stored(id, Sum(products, &scaled));
  }
  TwoDoubles sum = Multiply({.hi = node.alpha, .lo = 0}, Sum(products, nullptr));
  if (!Acc().exact()) sum = {.hi = Acc().Store(sum), .lo = 0};
  if (addend != nullptr) {
    sum = Add(sum, Multiply({.hi = node.beta, .lo = 0}, *addend));
    if (!Acc().exact()) sum = {.hi = Acc().Store(sum), .lo = 0};
  }
  return Stored(id, sum);
}

TwoDoubles EmulatedArithmetic::Reduce(const PlanNode&, int id, int64_t, std::span<const TwoDoubles> terms) const {
  return Stored(id, Sum(terms, nullptr));
}

}  // namespace ulpscope
