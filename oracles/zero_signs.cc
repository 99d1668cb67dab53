// Signs of zeros by the arithmetic of pairs, which keeps them.
#include "oracles/zero_signs.h"

#include <algorithm>
#include <cmath>

#include "harness/base/find.h"
#include "oracles/emulated.h"
#include "oracles/evaluate.h"
#include "oracles/path.h"

namespace ulpscope {
namespace {

/// True if every implementation gives the same sign to a zero result of the step: copies, the operations of IEEE 754,
/// and odd functions.
bool HasOneSign(const PlanNode& node) {
  using enum NodeKind;
  constexpr NodeKind kKinds[] = {kInput, kView,  kChoose, kJoin, kTake, kAdd,   kSub,
                                 kMul,   kDiv,   kNeg,    kSqrt, kAbs,  kCast,  kStore,
                                 kFloor, kTrunc, kTanh,   kSinh, kSin,  kExpm1, kErf};
  if (node.kind == kConstant) return true;
  return !node.inner && FormatOf(node.dtype) != nullptr &&
         std::ranges::find(kKinds, node.kind) != std::end(kKinds);
}

bool IsMinusZero(double value) { return value == 0 && std::signbit(value); }

}  // namespace

std::vector<int> ZeroSignsOf(Shared* shared, int node, std::span<const int64_t> elements) {
  const Plan& plan = shared->plan;
  std::vector<int> signs(elements.size(), 0);
  const ValuePath path = PathOf(plan, node);
  const PlanNode& root = plan.at(path.root);
  // A condition's arguments decide which operand is copied, and are no operands themselves; integers give
  // positions of elements.
  const bool sum = (root.kind == NodeKind::kReduce || root.kind == NodeKind::kContract) && !root.inner &&
                   root.alpha() == 1 && root.args.size() <= 2;
  for (const int id : path.nodes) {
    if (!(id == path.root && sum) && !HasOneSign(plan.at(id)) && !IsCondition(plan.at(id).kind)) return signs;
  }
  Binding plain;
  plain.store.resize(plan.nodes.size());
  plain.in.resize(plan.nodes.size());
  Evaluator<EmulatedArithmetic> exact(plan, shared->inputs,
                                      EmulatedArithmetic(&plain, &shared->cache, nullptr));
  std::vector<TwoDoubles> a, b;
  for (size_t i = 0; i < elements.size(); ++i) {
    const TwoDoubles value = exact.At(node, elements[i]);
    if (value.hi != 0 || value.lo != 0) continue;
    signs[i] = std::signbit(value.hi) ? -1 : 1;
    if (!sum) continue;
    exact.Operands(path.root, plan.RootIndex(node, elements[i]), &a, &b);
    bool all_minus = true;
    for (size_t k = 0; k < a.size(); ++k)
      all_minus = all_minus && IsMinusZero(b.empty() ? a[k].hi : a[k].hi * b[k].hi);
    signs[i] = all_minus ? 0 : 1;
  }
  return signs;
}

}  // namespace ulpscope
