// Names of nodes.
#include "oracles/plan_names.h"

namespace ulpscope {

void TellScalarsApart(Plan* plan) {
  constexpr size_t kMost = 3;
  std::map<std::string, std::map<int, std::string>> readers;  // of the numbers of an op
  size_t numbers = 0;
  for (const PlanNode& node : plan->nodes) {
    for (const int arg : node.args) {
      const int root = plan->Root(arg);
      const PlanNode& constant = plan->at(root);
      if (!constant.is_scalar() || node.name.empty()) continue;
      if (readers[constant.Get<DoubleNumber>().scalar].emplace(root, node.name).second) ++numbers;
    }
  }
  if (numbers > kMost) return;
  for (const auto& [name, nodes] : readers) {
    if (nodes.size() < 2) continue;
    for (const auto& [node, reader] : nodes)
      plan->nodes[static_cast<size_t>(node)].Get<DoubleNumber>().scalar += "@" + reader;
  }
}

std::map<std::string, int> InsideOf(const Plan& plan) {
  std::map<std::string, int> inside;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& node = plan.nodes[i];
    if (node.inner && !node.name.empty() && !plan.gaps.contains(node.name))
      inside.emplace(node.name, static_cast<int>(i));
  }
  return inside;
}

}  // namespace ulpscope
