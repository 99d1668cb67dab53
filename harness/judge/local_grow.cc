// Pieces of a program that grow around a step: uses that are read before they are rounded.
#include <algorithm>
#include <set>
#include <utility>

#include "harness/base/find.h"
#include "harness/judge/label.h"
#include "harness/judge/step_judge.h"

namespace ulpscope {

void StepJudge::Grow(size_t last, const std::vector<std::string>& operands, Before before, bool natural,
                     std::set<Uses>* tried, std::vector<Explanation>* found) {
  // Of the forms of a step each may explain what is stored: they take no place from what is read before it is rounded.
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
    // Whether a bias is part of the narrow sum or is added after it does not show in what is stored of it.
    std::swap(forms, forms_);
    give();
    std::swap(forms, forms_);
  }
}

}  // namespace ulpscope
