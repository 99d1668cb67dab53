// One model for a whole program: its form for each value, and the program run with it.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "oracles/canonical.h"
#include "oracles/dot/sum.h"
#include "oracles/emulated.h"
#include "oracles/evaluate.h"
#include "oracles/expand.h"
#include "oracles/inputs.h"
#include "oracles/oracle.h"

namespace ulpscope {
namespace {

/// The choice for one value that follows from one model for a whole program (as the emulated backend runs
/// it): the truth that the classifier has to find.
Choice ChoiceOfProgramModel(const Plan& plan, const ValuePath& path, const PrecisionModel& model,
                            DType observed) {
  const Rounding mode = model.out.rounding;
  // A value that is not floating-point is stored unchanged.
  const FloatFormat* stored = FormatOf(observed);
  const RoundSpec out = stored == nullptr ? RoundSpec{} : RoundSpec{.format = stored, .rounding = mode};
  Choice choice{.in = {}, .prod = model.prod, .acc = model.acc, .out = out, .cuts = {}, .mode = mode};
  const auto every = model.in.find("*");
  for (const auto& [operand, dtype] : path.operands) {
    if (const auto own = model.in.find(operand); own != model.in.end())
      choice.in[operand] = own->second;
    else if (every != model.in.end() && IsWide(FormatOf(dtype)))
      choice.in[operand] = every->second;
  }
  const auto rounded_after = [&](const PlanNode& node) {
    return (IsReduction(node.kind) && !node.inner) || (node.inner && !IsStep(node));
  };
  const PlanNode& root = plan.at(path.root);
  if (rounded_after(root) || (root.inner && path.has_inner)) choice.mid = model.mid;
  if (root.kind == NodeKind::kCast) choice.out.rounding = Rounding::kNearestEven;
  for (const int cut : path.cut_points) {
    const PlanNode& node = plan.at(cut);
    if (IsStep(node)) continue;
    FormatChain& formats = choice.cuts[cut];
    if (rounded_after(node) && !model.mid.none()) formats.push_back(model.mid.format);
    if (const FloatFormat* own = FormatOf(node.dtype)) formats.push_back(own);
  }
  return Canonical(plan, path, std::move(choice));
}

/// The binding that the emulated backend runs a whole program with.
Binding BindingOfProgramModel(const Plan& plan, const PrecisionModel& model) {
  Binding binding;
  binding.store.resize(plan.nodes.size());
  binding.in.resize(plan.nodes.size());
  binding.prod = model.prod;
  binding.acc = model.acc;
  const Rounding mode = model.out.rounding;
  const auto every = model.in.find("*");
  // Consumers outside see the last step of a composite op (the one that is stored in the op's own dtype).
  std::set<int> inside;
  for (size_t id = 0; id < plan.nodes.size(); ++id) {
    const PlanNode& node = plan.nodes[id];
    if (node.inner) {
      for (const int arg : node.args) inside.insert(plan.Root(arg));
    }
  }
  for (size_t id = 0; id < plan.nodes.size(); ++id) {
    const PlanNode& node = plan.nodes[id];
    if (node.kind == NodeKind::kInput || node.kind == NodeKind::kConstant || node.kind == NodeKind::kView)
      continue;
    if (node.kind == NodeKind::kContract) {
      for (size_t i = 0; i < 2; ++i) {
        const auto own = model.in.find(NameOf(plan, node.args[i]));
        if (own != model.in.end())
          binding.in[id][i] = InOf(own->second, HeldIn(plan, node.args[i]));
        else if (every != model.in.end() && IsWide(HeldIn(plan, node.args[i])))
          binding.in[id][i] = every->second;
      }
    }
    const bool step_inside = node.inner && (!node.name.empty() && node.name.find('.') != std::string::npos &&
                                            inside.contains(static_cast<int>(id)));
    if (step_inside) continue;
    auto& store = binding.store[id];
    if ((IsReduction(node.kind) || node.inner) && !model.mid.none()) store.push_back(model.mid);
    if (const FloatFormat* format = FormatOf(node.dtype)) {
      store.push_back({.format = format,
                       .rounding = node.kind == NodeKind::kCast ? Rounding::kNearestEven : mode,
                       .subnormals = Subnormals::kGradual});
    }
  }
  return binding;
}

}  // namespace

Result<std::map<std::string, TensorData>> EmulateProgram(const Case& c,
                                                         const std::map<std::string, TensorData>& inputs,
                                                         const PrecisionModel& model,
                                                         const std::string& order) {
  if (auto ok = CheckInputs(c, inputs); !ok) return Fail(ok.error());
  auto plan = Lower(c);
  if (!plan) return Fail(plan.error());
  for (const auto& [value, why] : plan->gaps) return Fail(why + " (value '" + value + "')");
  const SumOrder* tree = nullptr;
  std::vector<std::string> known;
  for (const auto& candidate : SumOrders(AddendOrders::kBoth)) {
    known.push_back(candidate.name);
    if (candidate.name == order) tree = &candidate;
  }
  if (tree == nullptr) return Fail("unknown accumulation order '" + order + "'");
  const Binding binding = BindingOfProgramModel(*plan, model);
  EvaluationCache cache(*plan, inputs);
  Evaluator<EmulatedArithmetic> evaluator(*plan, inputs, EmulatedArithmetic(&binding, &cache, tree));
  std::map<std::string, TensorData> values;
  for (const auto& [name, node] : plan->values) {
    const PlanNode& view = plan->at(node);
    TensorData data = TensorData::Zeros(view.dtype, view.shape);
    for (int64_t i = 0; i < data.size(); ++i) data.Set(i, evaluator.At(node, i).hi);
    values.emplace(name, std::move(data));
  }
  return values;
}

Result<PrecisionModel> TrueModel(const Case& c, const std::string& value, const PrecisionModel& model,
                                 DType observed) {
  const auto plan = Lower(c);
  if (!plan) return Fail(plan.error());
  const auto node = plan->values.find(value);
  if (node == plan->values.end()) return Fail("no value '" + value + "'");
  const ValuePath path = PathOf(*plan, node->second);
  return ModelOf(*plan, path, ChoiceOfProgramModel(*plan, path, model, observed));
}

Result<int64_t> EmulationCost(const Case& c) {
  const auto plan = Lower(c);
  if (!plan) return Fail(plan.error());
  int64_t cost = 0;
  for (const auto& [name, node] : plan->values) {
    for (const int id : PathOf(*plan, node).nodes)
      cost += plan->size(id) * std::max<int64_t>(1, plan->at(id).terms());
  }
  return cost;
}

}  // namespace ulpscope
