// Makes candidate models, and finds those that were made.
#include "oracles/value_bank.h"

#include <algorithm>
#include <utility>

namespace ulpscope {
namespace {

/// Nodes without the shapes that no precision model depends on: the key of the candidate models.
std::vector<PlanNode> WithoutShapes(std::vector<PlanNode> nodes) {
  for (PlanNode& node : nodes) {
    node.shape.clear();
    if (std::holds_alternative<Arrangement>(node.part)) node.part = Arrangement{};
    if (auto* product = std::get_if<Contraction>(&node.part)) product->m = product->n = 0;
  }
  return nodes;
}

}  // namespace

const std::vector<SumOrder>& OrdersOf(const Plan& plan, const ValuePath& path) {
  const bool addend =
      std::ranges::any_of(path.reductions, [&](int id) { return plan.at(id).args.size() == 3; });
  return SumOrders(addend ? AddendOrders::kBoth : AddendOrders::kNone);
}

void ValueBank::Bind(const Plan& plan) {
  for (const Choice& choice : choices) {
    models.push_back(ModelOf(plan, path, choice));
    bindings.push_back(BindingOf(plan, path, choice));
  }
}

RecentBanks::Bank RecentBanks::Find(const Plan& plan, int node, DType observed, Enumerate enumerate) {
  const std::vector<PlanNode> nodes = WithoutShapes(plan.nodes);
  const std::lock_guard lock(mutex_);
  const auto same = std::ranges::find_if(kept_, [&](const Kept& kept) {
    return kept.bank->node == node && kept.observed == observed && kept.enumerate == enumerate &&
           kept.nodes == nodes;
  });
  if (same == kept_.end()) return nullptr;
  std::rotate(kept_.begin(), same, same + 1);
  return kept_.front().bank;
}

void RecentBanks::Keep(const Plan& plan, DType observed, Enumerate enumerate, Bank bank) {
  if (bank->choices.size() > kMostChoices) return;
  const std::lock_guard lock(mutex_);
  kept_.insert(kept_.begin(), {.nodes = WithoutShapes(plan.nodes),
                               .observed = observed,
                               .enumerate = enumerate,
                               .bank = std::move(bank)});
  size_t choices = 0, banks = 0;
  while (banks < kept_.size() && (choices += kept_[banks].bank->choices.size()) <= kMostChoices) ++banks;
  kept_.resize(std::min(banks, kMostBanks));
}

RecentBanks& Recent() {
  static RecentBanks banks;
  return banks;
}

}  // namespace ulpscope
