// The cache that the evaluations of one plan share: terms of inner sums, matrices, plain sums.
#include <algorithm>
#include <memory>
#include <string>

#include "oracles/binding.h"

namespace ulpscope {

bool TermsInside::OfNode::IsUnder(const Binding& binding, int node) const {
  return in == binding.in[static_cast<size_t>(node)] && prod == binding.prod;
}

const Passes* TermsInside::Find(const Binding& binding, int node, int64_t index) const {
  const auto of_node = known_.find(node);
  if (of_node == known_.end() || !of_node->second.IsUnder(binding, node)) return nullptr;
  const auto entry = of_node->second.by_element.find(index);
  return entry == of_node->second.by_element.end() ? nullptr : &entry->second;
}

void TermsInside::Keep(const Binding& binding, int node, int64_t index, Passes passes) {
  OfNode& of_node = known_[node];
  if (!of_node.IsUnder(binding, node)) {
    terms_ -= of_node.terms;
    of_node = {
        .in = binding.in[static_cast<size_t>(node)], .prod = binding.prod, .by_element = {}, .terms = 0};
  }
  size_t terms = 0;
  for (const auto& pass : passes) terms += pass.size();
  if (terms_ + terms > kMostTerms) return;
  of_node.terms += terms;
  terms_ += terms;
  of_node.by_element[index] = std::move(passes);
}

EvaluationCache::EvaluationCache(const Plan& p, const std::map<std::string, TensorData>& tensors)
    : raw(p.nodes.size()), operands(p.nodes.size()), fixed(p.nodes.size()), plan(&p), inputs(&tensors) {
  std::vector<bool> untouched(p.nodes.size());
  for (size_t id = 0; id < p.nodes.size(); ++id) {
    const PlanNode& node = p.nodes[id];
    const auto is_untouched = [&](int arg) { return untouched[static_cast<size_t>(arg)]; };
    // A product's addend is no operand of its.
    const std::span factors =
        std::span(node.args).first(node.kind == NodeKind::kContract ? 2 : node.args.size());
    const bool below = std::ranges::all_of(factors, is_untouched);
    const DoubleNumber* number = node.If<DoubleNumber>();
    const bool scalar = node.kind == NodeKind::kConstant && (number == nullptr || !number->scalar.empty());
    // 0 and 1 are numbers of every format.
    const bool stored = (node.kind == NodeKind::kStore || node.kind == NodeKind::kCast) &&
                        IsCondition(p.at(p.Root(node.args[0])).kind);
    const bool keeps = node.kind <= NodeKind::kView || RoundsNothing(node.kind) || stored;
    untouched[id] = below && keeps && !scalar;
    fixed[id] = below && IsReduction(node.kind) && node.kind != NodeKind::kScan;
  }
  for (size_t id = 0; id < p.nodes.size(); ++id) {
    const PlanNode& node = p.nodes[id];
    if (!IsReduction(node.kind) || node.kind == NodeKind::kScan) continue;
    raw[id] = true;
    for (size_t i = 0; i < std::min<size_t>(node.args.size(), 2); ++i) {
      const PlanNode& root = p.nodes[static_cast<size_t>(p.Root(node.args[i]))];
      const bool constant = root.If<DoubleNumber>() != nullptr && !root.is_scalar();
      if (root.kind != NodeKind::kInput && !constant) raw[id] = false;
    }
  }
}

std::shared_ptr<PlainSums> EvaluationCache::Plain(int id, const Binding& binding) {
  const PlanNode& node = plan->at(id);
  if (!raw[static_cast<size_t>(id)] || node.kind != NodeKind::kContract) return nullptr;
  const std::string key = std::to_string(id) + "|" + binding.term_key;
  constexpr size_t kMost = 4;
  const auto known = std::ranges::find_if(plain, [&](const auto& entry) { return entry.first == key; });
  if (known != plain.end()) {
    std::rotate(plain.begin(), known, known + 1);
    return plain.front().second;
  }
  auto& matrix = matrices[id];
  if (!matrix) matrix = std::make_shared<RawMatrices>(*plan, *inputs, node);
  if (plain.size() == kMost) plain.pop_back();
  plain.emplace(plain.begin(), key,
                std::make_shared<PlainSums>(matrix, binding.in[static_cast<size_t>(id)], binding.prod));
  return plain.front().second;
}

}  // namespace ulpscope
