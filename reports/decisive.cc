// Choosing exclusions.
#include "reports/decisive.h"

#include <algorithm>
#include <limits>
#include <set>

#include "harness/base/find.h"
#include "harness/model/conforming.h"

namespace ulpscope {
namespace {

/// Entries of either map that the other does not have alike.
size_t Differing(const std::map<std::string, RoundSpec>& a, const std::map<std::string, RoundSpec>& b) {
  size_t differing = 0;
  for (const auto& [key, spec] : a) {
    const auto other = b.find(key);
    differing += other == b.end() || other->second != spec ? 1 : 0;
  }
  for (const auto& [key, spec] : b) differing += a.contains(key) ? 0 : 1;
  return differing;
}

size_t Distance(const PrecisionModel& a, const PrecisionModel& b) {
  return Differing(a.in, b.in) + Differing(a.cuts, b.cuts) + (a.prod != b.prod ? 1 : 0) +
         (a.acc != b.acc ? 1 : 0) + (a.mid != b.mid ? 1 : 0) + (a.out != b.out ? 1 : 0);
}

const std::vector<PrecisionModel>& Left(const Classification& classification) {
  return classification.models_proved.empty() ? classification.models : classification.models_proved;
}

/// The reason of the result names it.
bool IsCited(const Exclusion& exclusion, const Exclusion* cited) {
  return cited != nullptr && cited->model == exclusion.model &&
         cited->further_input == exclusion.further_input && cited->element == exclusion.element;
}

/// Unrounded operands, sums in float32, nothing between them and the output rounding.
bool IsFloat32Throughout(const PrecisionModel& model) {
  return IsConforming(model, Binary32(), kFloat32Sums);
}

}  // namespace

const Exclusion* NearestRival(const Classification& classification) {
  const auto& models = classification.models.empty() ? Left(classification) : classification.models;
  const Exclusion* nearest = nullptr;
  size_t least = std::numeric_limits<size_t>::max();
  for (const Exclusion& exclusion : classification.excluded) {
    size_t distance = least == std::numeric_limits<size_t>::max() ? least - 1 : least;
    for (const PrecisionModel& model : models)
      distance = std::min(distance, Distance(model, exclusion.model));
    if (distance >= least) continue;
    least = distance;
    nearest = &exclusion;
  }
  return nearest;
}

void KeepShownExclusions(const std::vector<Divergence>& divergences, std::vector<CaseResult>* results) {
  RunReport report;
  report.results = std::move(*results);
  report.divergences = divergences;
  const DecisiveExclusions decisive(report);
  std::vector<std::pair<Classification*, std::vector<Exclusion>>> kept;
  for (CaseResult& result : report.results) {
    for (auto& [name, value] : result.values) {
      Classification& mine = value.classification;
      std::set<const Exclusion*> shown;
      for (const Exclusion* exclusion : decisive.Of(result, name)) shown.insert(exclusion);
      // Whatever else two backends differ in, the witness is chosen from the models of one that the other excludes
      // (reports/witness.h).
      for (const CaseResult& other : report.results) {
        const auto there = other.values.find(name);
        if (&other == &result || there == other.values.end()) continue;
        const auto& models = Left(there->second.classification);
        const auto parts = std::ranges::find_if(
            mine.excluded, [&](const Exclusion& exclusion) { return Contains(models, exclusion.model); });
        if (parts != mine.excluded.end()) shown.insert(&*parts);
      }
      std::vector<Exclusion> few;
      for (const Exclusion& exclusion : mine.excluded) {
        if (shown.contains(&exclusion)) few.push_back(exclusion);
      }
      kept.emplace_back(&mine, std::move(few));
    }
    if (!result.opened) continue;
    // No report shows exclusions of single steps.
    for (auto& step : result.opened->steps)
      kept.emplace_back(&step.result.classification, std::vector<Exclusion>());
  }
  for (auto& [classification, few] : kept) {
    classification->excluded_elsewhere += static_cast<int64_t>(classification->excluded.size() - few.size());
    classification->excluded = std::move(few);
  }
  *results = std::move(report.results);
}

DecisiveExclusions::DecisiveExclusions(const RunReport& report) {
  for (const Divergence& divergence : report.divergences)
    divergences_[divergence.case_id].push_back(&divergence);
  for (const CaseResult& result : report.results) results_[{result.id, result.backend}] = &result;
}

void DecisiveExclusions::AddRivals(const CaseResult& result, const std::string& value,
                                   std::vector<const ValueResult*>* rivals) const {
  const auto of_case = divergences_.find(result.id);
  if (of_case == divergences_.end()) return;
  for (const Divergence* divergence : of_case->second) {
    if (divergence->backends.size() != 2 || divergence->kind != DivergenceKind::kPrecision) continue;
    if (divergence->value != value && !Contains(divergence->also, value)) continue;
    for (const size_t mine : {size_t{0}, size_t{1}}) {
      if (!Contains(divergence->backends[mine], result.backend)) continue;
      for (const auto& backend : divergence->backends[1 - mine]) {
        const auto other = results_.find({result.id, backend});
        if (other == results_.end()) continue;
        const auto there = other->second->values.find(value);
        if (there != other->second->values.end()) rivals->push_back(&there->second);
      }
    }
  }
}

std::vector<const Exclusion*> DecisiveExclusions::Of(const CaseResult& result,
                                                     const std::string& value) const {
  const Classification& classification = result.values.at(value).classification;
  const auto& excluded = classification.excluded;
  std::set<const Exclusion*> chosen;
  if (const Exclusion* nearest = NearestRival(classification)) chosen.insert(nearest);
  std::set<std::string> further;
  for (const Exclusion& exclusion : excluded) {
    const bool cited = IsCited(exclusion, Lookup(result.cited, value));
    const std::string& input = exclusion.further_input;
    const bool first_of_input = !input.empty() && further.insert(input).second;
    if (cited || first_of_input || IsFloat32Throughout(exclusion.model)) chosen.insert(&exclusion);
  }
  std::vector<const ValueResult*> rivals;
  AddRivals(result, value, &rivals);
  for (const ValueResult* rival : rivals) {
    const auto& models = Left(rival->classification);
    const auto parts = std::ranges::find_if(
        excluded, [&](const Exclusion& exclusion) { return Contains(models, exclusion.model); });
    if (parts != excluded.end()) chosen.insert(&*parts);
  }
  std::vector<const Exclusion*> decisive;
  for (const Exclusion& exclusion : excluded) {
    if (chosen.contains(&exclusion)) decisive.push_back(&exclusion);
  }
  return decisive;
}

}  // namespace ulpscope
