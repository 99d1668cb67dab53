// Grows subprograms around a step: uses that are read before they are rounded.
#include <algorithm>
#include <set>
#include <utility>

#include "harness/base/find.h"
#include "harness/judge/label.h"
#include "harness/judge/step_judge.h"

namespace ulpscope {

void StepJudge::Grow(size_t last, const std::vector<std::string>& operands, Before before, bool natural,
                     std::set<Uses>* tried, std::vector<Explanation>* found) {
  // Every form of a step may explain the stored results; forms do not count towards the limit on unrounded reads.
  const auto grown = [&] {
    return static_cast<size_t>(std::count_if(
        found->begin(), found->end(), [](const Explanation& each) { return !each.unrounded.empty(); }));
  };
  for (const auto& some : Combinations(operands)) {
    const Uses uses = With(last, some, before);
    if (grown() >= kMostKept || !tried->insert(uses).second) continue;
    if (!natural && SumsBefore(last, uses)) continue;
    Keep(last, uses, NameOf(uses), Classify(last, Cut(last, uses), natural), found);
  }
}

void StepJudge::GrowForms(size_t last, const std::vector<std::string>& operands,
                          std::vector<Explanation>* found) {
  for (const auto& form : FormsOf(last)) {
    std::set<Uses> tried;
    for (const Before before : {Before::kAsExplained, Before::kStored}) {
      for (const auto& some : Combinations(operands)) {
        const Uses uses = With(last, some, before);
        if (found->size() >= kMostKept || !tried.insert(uses).second) continue;
        Keep(last, uses, NameOf(uses), Classify(last, Cut(last, uses, {}, form), true), found);
      }
    }
  }
}

void StepJudge::GrowNarrow(size_t last, const std::vector<std::string>& operands,
                           std::vector<Explanation>* found) {
  if (HasFormat(last) || CountNumbers(values_.at(steps_[last].step.as), kManyNumbers) < kManyNumbers) return;
  for (const auto& some : Combinations(operands)) {
    const Uses uses = With(last, some, Before::kAsExplained);
    std::vector<Proposal> named;
    auto forms = forms_;
    for (const Use& use : uses) {
      const auto by = ComputedBy(use.second);
      const auto narrow = by ? narrow_.find(*by) : narrow_.end();
      if (narrow == narrow_.end()) continue;
      for (const AccSpec& acc : narrow->second) named.push_back({.in = {}, .acc = acc});
      const auto others = FormsOf(*by);
      if (!others.empty()) forms.insert_or_assign(*by, others.front());
    }
    const auto give = [&] {
      if (named.empty() || found->size() >= kMostKept) return;
      auto piece = Classify(last, Cut(last, uses), true, nullptr, named);
      const size_t before = found->size();
      if (piece && piece->reproduced == 1) Keep(last, uses, NameOf(uses), std::move(piece), found);
      if (found->size() > before) found->back().of_narrow_sums = true;
    };
    const size_t before = found->size();
    give();
    if (found->size() > before || forms.size() == forms_.size()) continue;
    // The stored sum does not show whether a bias is part of the narrow sum or is added after it.
    std::swap(forms, forms_);
    give();
    std::swap(forms, forms_);
  }
}

}  // namespace ulpscope
