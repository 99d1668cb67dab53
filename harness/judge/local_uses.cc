// Chooses the uses along which a subprogram grows, with the chains behind them, and searches the best set.
#include <algorithm>
#include <cmath>
#include <span>

#include "harness/base/find.h"
#include "harness/judge/classify_options.h"
#include "harness/judge/likelihood.h"
#include "harness/judge/sample.h"
#include "harness/judge/step_judge.h"
#include "harness/num/float_format.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

/// Chosen: the limits of a search over several steps, in results, sets of uses and uses; no test of their neighbours.
constexpr int64_t kMostSearched = 256;
constexpr int kMostTried = 120;           // chosen, as the one above
constexpr size_t kMostSearchedUses = 32;  // chosen, as the one above
constexpr int64_t kFewestUsed = 32;  // chosen: of fewer results chance gives nearly every one (kSomeNumbers)

}  // namespace

std::vector<std::string> StepJudge::ComputedOperands(size_t i) const {
  std::vector<std::string> names;
  for (const Operand& operand : steps_[i].step.of) {
    if (operand.IsScalar() || Contains(names, operand.name)) continue;
    const auto by = ComputedBy(operand.name);
    if (!by) continue;
    const auto value = values_.find(steps_[*by].step.as);
    const OpRow* op = FindOp(steps_[*by].step.op);
    if (value == values_.end() || !IsFloating(value->second.dtype)) continue;
    // A value made from nothing has no rounding; one without a reference is used as stored.
    if ((op != nullptr && op->operands.most == 0) || given_.contains(*by)) continue;
    names.push_back(operand.name);
  }
  return names;
}

bool StepJudge::ReadsComputedNumbers(size_t i) const {
  const auto& operands = steps_[i].step.of;
  return std::ranges::any_of(operands, [&](const Operand& operand) {
    if (operand.IsScalar()) return false;
    const auto by = ComputedBy(operand.name);
    if (!by) return false;
    const auto value = values_.find(steps_[*by].step.as);
    return value == values_.end() || IsFloating(value->second.dtype);
  });
}

std::string StepJudge::Shown(const std::string& operand) const {
  const auto by = ComputedBy(operand);
  return by ? steps_[*by].step.as : operand;
}

std::string StepJudge::NameOfUse(size_t last, const std::string& operand) const {
  std::set<std::string> same;
  for (const Operand& each : steps_[last].step.of) {
    if (!each.IsScalar() && Shown(each.name) == Shown(operand)) same.insert(each.name);
  }
  return same.size() > 1 ? operand : Shown(operand);
}

StepJudge::Uses StepJudge::With(size_t last, const std::vector<std::string>& operands, Before before) const {
  Uses uses;
  for (const std::string& operand : operands) AddChain(last, operand, before, &uses);
  return uses;
}

void StepJudge::AddChain(size_t reader, const std::string& operand, Before before, Uses* uses) const {
  if (!uses->insert({reader, operand}).second) return;
  const auto maker = made_by_.find(operand);
  if (maker == made_by_.end()) return;
  if (IsArrangement(maker->second)) {
    const Step& view = steps_[maker->second].step;
    if (!view.of.empty() && !view.of.front().IsScalar())
      AddChain(maker->second, view.of.front().name, before, uses);
    return;
  }
  if (before == Before::kStored || (before == Before::kFromSums && sums_.contains(maker->second))) return;
  if (before == Before::kUpToSums || before == Before::kFromSums) {
    for (const std::string& each : ComputedOperands(maker->second)) {
      const auto by = ComputedBy(each);
      if (before == Before::kFromSums || !by || !sums_.contains(*by))
        AddChain(maker->second, each, before, uses);
    }
    return;
  }
  // clamp returns one of its operands, and x + 0 is x: only those operands' roundings could have been skipped.
  if (before == Before::kUnrounded || exact_.contains(maker->second)) {
    for (const std::string& each : ComputedOperands(maker->second))
      AddChain(maker->second, each, before, uses);
    return;
  }
  const auto known = explained_.find(maker->second);
  if (known != explained_.end()) uses->insert(known->second.begin(), known->second.end());
}

bool StepJudge::SumsBefore(size_t last, const Uses& uses) const {
  return std::ranges::any_of(uses, [&](const Use& use) {
    const auto by = ComputedBy(use.second);
    return by && *by != last && sums_.contains(*by);
  });
}

std::vector<std::vector<std::string>> StepJudge::Combinations(const std::vector<std::string>& names) {
  std::vector<std::vector<std::string>> all;
  if (names.size() <= kMostCombined) {
    for (size_t bits = 1; bits < size_t{1} << names.size(); ++bits) {
      auto& some = all.emplace_back();
      for (size_t i = 0; i < names.size(); ++i) {
        if ((bits >> i & 1) != 0) some.push_back(names[i]);
      }
    }
  } else {
    for (const std::string& name : names) all.push_back({name});
    all.push_back(names);
  }
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return all;
}

std::string StepJudge::NameOf(const Uses& uses) const {
  std::string name = "step";
  for (const auto& [step, operand] : uses) name += " " + steps_[step].step.as + "<" + operand;
  return name;
}

std::vector<StepJudge::Use> StepJudge::UsesOf(size_t last, const Uses& uses) const {
  std::set<size_t> inside{last};
  for (const Use& use : uses) {
    if (const auto by = made_by_.find(use.second); by != made_by_.end()) inside.insert(by->second);
  }
  std::vector<Use> all;
  for (const size_t i : inside) {
    for (const std::string& operand : ComputedOperands(i)) all.emplace_back(i, operand);
  }
  return all;
}

double StepJudge::ShareWith(size_t last, const Uses& uses, const std::vector<int64_t>& elements,
                            PieceOptions how) {
  const auto piece = Cut(last, uses);
  if (!piece) return -1;
  const std::string& name = steps_[last].step.as;
  const TensorData& observed = values_.at(name);
  how.unrounded = piece->unrounded;
  auto oracle = open_(piece->program, piece->inputs, how);
  if (!oracle || !(*oracle)->Describe(name)) return -1;
  constexpr size_t kMostModels = 4096;  // chosen, as kManyModels; nothing known tests its neighbours
  const auto models = (*oracle)->Bank(name, observed.dtype);
  if (models.size() > kMostModels) return kNotAsked;
  std::vector<double> stored;
  for (const int64_t element : elements) stored.push_back(observed.At(element));
  size_t misses = elements.size();
  for (const auto& model : models) {
    misses = model->order_free() ? std::min(misses, DifferentValues(model->Stored(-1, elements), stored))
                                 : FewestMisses(*model, elements, stored, misses);
  }
  counts_ += (*oracle)->Counts();
  return models.empty()
             ? -1
             : static_cast<double>(elements.size() - misses) / static_cast<double>(elements.size());
}

StepJudge::Uses StepJudge::AllUses(size_t last, bool through_products) {
  Uses uses;
  std::vector<Use> pending = UsesOf(last, {});
  while (!pending.empty() && uses.size() < kMostSearchedUses) {
    const Use use = pending.back();
    pending.pop_back();
    const auto by = ComputedBy(use.second);
    const OpRow* op = by ? FindOp(steps_[*by].step.op) : nullptr;
    if (!through_products && op != nullptr && op->kind == OpRow::Kind::kProduct) continue;
    Uses more;
    AddChain(use.first, use.second, Before::kStored, &more);
    uses.insert(more.begin(), more.end());
    if (!by) continue;
    for (const std::string& operand : ComputedOperands(*by)) {
      if (!uses.contains({*by, operand})) pending.emplace_back(*by, operand);
    }
  }
  return uses;
}

StepJudge::Uses StepJudge::Reached(size_t last, const Uses& uses) const {
  Uses reached;
  std::vector<size_t> pending{last};
  std::set<size_t> seen{last};
  while (!pending.empty()) {
    const size_t i = pending.back();
    pending.pop_back();
    for (const Use& use : uses) {
      if (use.first != i || !reached.insert(use).second) continue;
      const auto by = made_by_.find(use.second);
      if (by != made_by_.end() && seen.insert(by->second).second) pending.push_back(by->second);
    }
  }
  return reached;
}

StepJudge::Uses StepJudge::SearchUses(size_t last) {
  const TensorData& observed = values_.at(steps_[last].step.as);
  if (FormatOf(observed.dtype)->precision > Binary16().precision) return {};
  std::vector<int64_t> elements = ElementsToCheck(observed.shape, kMostSearched);
  std::erase_if(elements, [&](int64_t k) { return observed.At(k) == 0 || !std::isfinite(observed.At(k)); });
  if (static_cast<int64_t>(elements.size()) < kFewestUsed) return {};
  std::map<Uses, double> shares;
  const auto share = [&](const Uses& uses) {
    const auto [entry, is_new] = shares.try_emplace(uses, -1);
    if (is_new && shares.size() < static_cast<size_t>(kMostTried))
      entry->second = ShareWith(last, uses, elements);
    return entry->second;
  };
  const double stored = share({});
  Uses best;
  for (const Uses& start : {AllUses(last, false), AllUses(last, true)}) {
    if (start.empty() || start.size() >= kMostSearchedUses) continue;
    Uses uses = start;
    for (bool better = true; better && share(uses) < 1;) {
      better = false;
      for (const Use& use : Uses(uses)) {
        Uses fewer = uses;
        fewer.erase(use);
        if (share(fewer) <= share(uses)) continue;
        uses = std::move(fewer);
        better = true;
      }
    }
    if (share(uses) > share(best)) best = std::move(uses);
  }
  const double most = share(best);
  const auto n = static_cast<double>(elements.size());
  if (best.empty() || most < kNearlyEvery || most - stored < 3 * std::sqrt(n * most * (1 - most) + 1) / n)
    return {};
  // Uses behind a rounded use are not part of the subprogram.
  Uses reached = Reached(last, best);
  // Uses that change nothing count as stored.
  for (const Use& use : Uses(reached)) {
    Uses fewer = reached;
    fewer.erase(use);
    if (share(fewer) >= most) reached = std::move(fewer);
  }
  return reached;
}

}  // namespace ulpscope
