// Walks from a value to the tensors that it rests on.
#include "oracles/path.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "harness/base/find.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

bool IsCutPoint(const PlanNode& node, StepsCut steps) {
  if (node.kind == NodeKind::kInput || node.kind == NodeKind::kConstant || node.kind == NodeKind::kView ||
      RoundsNothing(node.kind))
    return false;
  // A sign changes no bit: its operand is rounded instead, under a name of its own.
  const bool sign = node.kind == NodeKind::kNeg || node.kind == NodeKind::kAbs;
  return !IsStep(node) || node.materialised || (steps == StepsCut::kNamed && !node.name.empty() && !sign);
}

}  // namespace

bool IsStep(const PlanNode& node) {
  return node.inner && (node.name.empty() || node.name.find('.') != std::string::npos);
}

const FloatFormat* HeldIn(const Plan& plan, int id) {
  const PlanNode& node = plan.at(plan.Root(id));
  const FloatFormat* own = FormatOf(node.dtype);
  if (node.kind != NodeKind::kCast && node.kind != NodeKind::kStore) return own;
  const FloatFormat* from = HeldIn(plan, node.args[0]);
  return own != nullptr && from != nullptr && Holds(*own, *from) ? from : own;
}

std::string NameOf(const Plan& plan, int node) {
  const PlanNode& root = plan.at(plan.Root(node));
  if (const TensorRead* read = root.If<TensorRead>()) return read->tensor;
  if (!root.name.empty()) return root.name;
  return "step" + std::to_string(plan.Root(node));
}

ValuePath PathOf(const Plan& plan, int node, StepsCut steps) {
  ValuePath path;
  path.root = plan.Root(node);
  std::set<int> seen;
  const std::function<void(int)> visit = [&](int id) {
    if (!seen.insert(id).second) return;
    for (const int arg : plan.at(id).args) visit(arg);
  };
  visit(path.root);
  path.nodes.assign(seen.begin(), seen.end());
  for (const int id : path.nodes) {
    const PlanNode& current = plan.at(id);
    if (current.inner) path.has_inner = true;
    if (IsFunction(current.kind)) path.approximate = true;
    if (current.is_scalar()) {
      const auto& [value, scalar] = current.Get<DoubleNumber>();
      for (const FloatFormat* format : {&Bfloat16(), &Binary16(), &Binary32()}) {
        const RoundSpec conversion = ToNearest(*format);
        const double rounded = conversion.Apply(value);
        // A format in which nothing is left of a number is no candidate for converting it.
        if (rounded == value || rounded == 0 || !std::isfinite(rounded)) continue;
        auto& conversions = path.scalars[scalar];
        if (!Contains(conversions, conversion)) conversions.push_back(conversion);
      }
    }
    if (IsReduction(current.kind)) {
      path.reductions.push_back(id);
      path.reduction_length = std::max(path.reduction_length, current.terms());
      path.terms += current.terms();
    }
    if (current.kind == NodeKind::kContract) {
      path.has_products = true;
      for (size_t i = 0; i < 2; ++i) {
        const PlanNode& operand = plan.at(plan.Root(current.args[i]));
        const FloatFormat* held = HeldIn(plan, current.args[i]);
        if (operand.kind != NodeKind::kConstant && held != nullptr)
          path.operands[NameOf(plan, current.args[i])] = *ParseDType(held->name);
      }
    }
    // A step on constants alone is a number that every kernel has as its own.
    const bool number = !current.args.empty() && std::ranges::all_of(current.args, [&](int arg) {
      return plan.at(plan.Root(arg)).kind == NodeKind::kConstant;
    });
    if (id != path.root && !number && IsCutPoint(current, steps)) path.cut_points.push_back(id);
  }
  for (auto& [scalar, conversions] : path.scalars) std::ranges::sort(conversions, {}, InWord);
  // A plain sum of a tensor may round its operand, as a product does. Composites have names for their steps instead.
  if (path.reductions.size() == 1) {
    const PlanNode& sum = plan.at(path.reductions.front());
    const PlanNode& summed = plan.at(plan.Root(sum.args[0]));
    if (sum.kind == NodeKind::kReduce && summed.kind == NodeKind::kInput && FormatOf(summed.dtype) != nullptr)
      path.operands[summed.Get<TensorRead>().tensor] = summed.dtype;
  }
  return path;
}

int64_t WorkOf(const Plan& plan, const ValuePath& path, int64_t elements) {
  std::map<int, int64_t> needed{{path.root, std::min(elements, plan.size(path.root))}};
  int64_t work = 0;
  // Operands have lower numbers than their readers.
  for (auto id = path.nodes.rbegin(); id != path.nodes.rend(); ++id) {
    const PlanNode& node = plan.at(*id);
    const int64_t terms = IsReduction(node.kind) ? std::max<int64_t>(1, node.terms()) : 1;
    work += needed[*id] * terms;
    for (const int arg : node.args) needed[arg] = std::min(plan.size(arg), needed[arg] + needed[*id] * terms);
  }
  return work;
}

}  // namespace ulpscope
