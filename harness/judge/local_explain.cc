// Defines which candidates count as explanations of a step's results, and which explanations are kept together.
#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/judge/classify_options.h"
#include "harness/judge/step_judge.h"
#include "harness/model/conforming.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

bool StepJudge::IsPlainScalar(const RoundSpec& conversion, const FloatFormat& result) {
  return conversion.format == nullptr ||
         (conversion.bits() >= result.precision && conversion.format->emin <= result.emin);
}

bool StepJudge::IsPlain(const PrecisionModel& model, const std::string& value) const {
  PrecisionModel own = model;
  std::erase_if(own.cuts, [&](const auto& cut) { return !cut.first.starts_with(value + "."); });
  return IsConforming(own, *FormatOf(values_.at(value).dtype), kWritten);
}

void StepJudge::Keep(size_t last, const Uses& uses, std::string piece, std::optional<Classification> found,
                     std::vector<Explanation>* all) const {
  if (!found || !found->fits) return;
  const std::string& value = steps_[last].step.as;
  const bool plain =
      std::ranges::any_of(found->models, [&](const PrecisionModel& model) { return IsPlain(model, value); });
  // If the results are all zero or not finite, any format of a small range gives them.
  const TensorData& observed = values_.at(value);
  bool numbers = plain;
  for (int64_t i = 0; i < observed.size() && !numbers; ++i)
    numbers = observed.At(i) != 0 && std::isfinite(observed.At(i));
  if (!numbers) return;
  found->piece = std::move(piece);
  if (found->kind == ClassificationKind::kExactOnly && found->max_ulp == 0)
    found->label += " of its operands";
  const bool wide_numbers = std::ranges::any_of(found->models, [&](const PrecisionModel& model) {
    return IsPlain(model, value) &&
           std::ranges::all_of(model.in, [](const auto& in) { return IsPlainScalar(in.second, Binary32()); });
  });
  all->push_back({.unrounded = uses,
                  .classification = std::move(*found),
                  .plain = plain,
                  .narrow_number = plain && !wide_numbers});
}

std::vector<StepJudge::Explanation> StepJudge::Best(size_t last, std::vector<Explanation> all) const {
  const bool narrow = FormatOf(values_.at(steps_[last].step.as).dtype)->precision <= Binary16().precision;
  double best = 0;
  int64_t looked = 0;
  for (const Explanation& each : all) {
    best = std::max(best, each.classification.reproduced);
    looked = std::max(looked, std::min(each.classification.checked, ClassifyOptions().likelihood_elements));
  }
  const auto n = static_cast<double>(std::max<int64_t>(looked, 1));
  const double margin = 3 * std::sqrt(n * best * (1 - best) + 1) / n;
  std::erase_if(all, [&](const Explanation& each) {
    const double share = each.classification.reproduced;
    // In the last bits of functions, chance may favour one form. Steps inside an op hide an operand's last bit.
    const bool as_stored = each.plain && each.unrounded.empty() && each.changed.empty();
    if (!narrow && as_stored && (best < kNearlyAll || has_steps_.contains(last))) return false;
    return share < best - margin || (narrow && share < kNearlyAll) || (!each.plain && share < kNearlyEvery);
  });
  // The narrow explanation that reproduces most comes first: one of two forms of an op's steps may only cover results
  // that the other reproduces. Roundings of steps are preferred to narrow formats of a sum.
  const auto sums_wide = [](const Explanation& each) {
    const auto& models = each.classification.models;
    return std::ranges::all_of(models, [](const PrecisionModel& model) { return model.acc.wide(); });
  };
  std::ranges::stable_sort(all, [&](const Explanation& a, const Explanation& b) {
    if (a.plain && b.plain) return a.IsOdd() < b.IsOdd();
    if (a.plain || b.plain) return a.plain;
    if (a.classification.reproduced != b.classification.reproduced)
      return a.classification.reproduced > b.classification.reproduced;
    return sums_wide(a) > sums_wide(b);
  });
  return all;
}

bool StepJudge::GivesNoMore(size_t last, const Explanation& each, const Classification& stored) const {
  const auto wide = [&](const std::string& value) {
    return FormatOf(values_.at(value).dtype)->precision > Binary16().precision;
  };
  const auto reads_narrow = [&](const Use& use) {
    const auto by = ComputedBy(use.second);
    return use.first == last && by && !wide(steps_[*by].step.as);
  };
  if (each.unrounded.empty() || !wide(steps_[last].step.as) ||
      std::ranges::any_of(each.unrounded, reads_narrow))
    return false;
  const double share = each.classification.reproduced;
  const auto n = static_cast<double>(
      std::max<int64_t>(1, std::min(each.classification.checked, ClassifyOptions().likelihood_elements)));
  if (share >= kNearlyAll) return false;
  // Every library has its own last bits of norms and functions.
  return has_steps_.contains(last) ||
         share - stored.reproduced < 3 * std::sqrt(n * share * (1 - share) + 1) / n;
}

}  // namespace ulpscope
