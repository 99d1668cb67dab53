// Finds alternatives that remain possible because of few results, sums in narrow formats or needless uses.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "harness/base/find.h"
#include "harness/judge/classify_options.h"
#include "harness/judge/label.h"
#include "harness/judge/sample.h"
#include "harness/judge/step_judge.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

void StepJudge::OpenNeedless(size_t last, Explanation* each) {
  // Chosen: a rounding before a softmax shows in one of fifty results, in two or three of 128 and in twenty of 1024.
  constexpr int64_t kMostElements = 1024, kFewElements = 128;
  // Sums in float32 are no evidence about operands that were summed in a narrow format.
  if (!each->plain || !each->changed.empty() || each->unrounded.empty() || each->of_narrow_sums) return;
  // If the few elements leave it open, as many are tested as a moment allows.
  const int64_t affordable = kGrownTerms / (4 * std::max<int64_t>(1, alone_ ? alone_->terms : 1));
  std::vector<Needless> samples{{kFewElements}, {std::clamp(affordable, kFewElements, kMostElements)}};
  for (const std::string& operand : ComputedOperands(last)) {
    Uses fewer = each->unrounded;
    if (fewer.erase({last, operand}) == 0) continue;
    // A kernel keeps float32 values in float32; a wider one would show in the last bits of nearly every result.
    const bool others = std::ranges::any_of(fewer, [&](const Use& use) { return use.first == last; });
    const bool wide = FormatOf(DataOf(operand)->dtype)->precision > Binary16().precision;
    if (others && wide && each->classification.reproduced < kNearlyEvery) {
      each->open.insert(operand);
      continue;
    }
    const bool open = std::ranges::all_of(
        samples, [&](Needless& sample) { return IsNeedless(last, each->unrounded, fewer, &sample); });
    if (open) each->open.insert(operand);
  }
}

bool StepJudge::IsNeedless(size_t last, const Uses& unrounded, const Uses& fewer, Needless* sample) {
  const PieceOptions natural{.unrounded = {}, .natural = true};
  if (sample->elements.empty()) {
    sample->elements = ElementsToCheck(values_.at(steps_[last].step.as).shape, sample->most);
    sample->written = ShareWith(last, unrounded, sample->elements);
    sample->natural = ShareWith(last, unrounded, sample->elements, natural);
  }
  if (sample->natural == kNotAsked) return true;
  const auto n = static_cast<double>(sample->elements.size());
  const double most = sample->natural;
  // If an earlier step has a rounding inside, the expected computation is no measure, and the best share counts.
  const bool as_written = sample->written >= most - 3 * std::sqrt(n * most * (1 - most) + 1) / n;
  const double all = as_written ? sample->written : most;
  // The use stays open if any computation without it reproduces as many, one with a narrow step inside too.
  const double share = ShareWith(last, fewer, sample->elements, {.unrounded = {}, .natural = !as_written});
  if (share != kNotAsked) return share >= all;
  // Too many models to test: only a use with which nearly every result follows, and far fewer without, is needed.
  const double fair = ShareWith(last, fewer, sample->elements, natural);
  return all < kNearlyEvery || fair >= all - 3 * std::sqrt(n * all * (1 - all) + 1) / n;
}

void StepJudge::LoadInto(Classification* result) const {
  if (!alone_ || alone_->has_products || alone_->reduction_length == 0) return;
  const auto loads = [&](const std::string& word) {
    const FloatFormat* format = FindFormat(word);
    const auto& accs = result->facets.acc;
    return format != nullptr && !accs.empty() && std::ranges::all_of(accs, [&](const AccSpec& acc) {
             return acc.binary() && acc.bits() == format->precision;
           });
  };
  for (auto& [operand, words] : result->reads) {
    if (!words.empty() && std::ranges::all_of(words, loads)) words.emplace_back("stored");
  }
}

void StepJudge::OpenToRange(size_t last, Classification* result) {
  for (const std::string& operand : FloatingOperands(last)) {
    const auto read = result->reads.find(NameOfUse(last, operand));
    if (read == result->reads.end() || read->second != std::vector<std::string>{std::string(Tf32().name)} ||
        LeavesNumbers(*DataOf(operand), Binary16()))
      continue;
    const auto found = Classify(last, Cut(last, {}, {{operand, {.format = &Binary16()}}}), true);
    if (found && !found->models_proved.empty()) read->second.emplace_back(Binary16().name);
  }
}

void StepJudge::OpenToSum(size_t last, Classification* result) {
  if (!sums_.contains(last) || !SumsNarrow(*result)) return;
  int least = Binary32().precision;
  std::set<AccSpec> accumulators;
  for (const PrecisionModel& model : result->models) {
    least = std::min(least, model.acc.bits());
    accumulators.insert(model.acc);
  }
  const bool few = CountNumbers(values_.at(steps_[last].step.as), kFewNumbers) < kFewNumbers;
  std::vector<Proposal> named;
  for (const AccSpec& acc : accumulators) named.push_back({.in = {}, .acc = acc});
  const auto gives_as_much = [&](const std::string& operand, const FloatFormat& format) {
    const auto piece = Cut(last, {}, {{operand, {.format = &format}}});
    const auto found = Classify(last, piece, true, nullptr, named);
    return found && found->fits && found->reproduced >= result->reproduced &&
           std::ranges::any_of(found->models,
                               [&](const PrecisionModel& model) { return accumulators.contains(model.acc); });
  };
  for (const std::string& operand : ComputedOperands(last)) {
    auto& words = result->reads[NameOfUse(last, operand)];
    const auto is = [&](std::string_view word) { return Contains(words, word); };
    if (!is("stored")) continue;
    for (const FloatFormat* format : {&Bfloat16(), &Binary16(), &Tf32()}) {
      if (format->precision < least || format->precision >= FormatOf(DataOf(operand)->dtype)->precision ||
          is(format->name))
        continue;
      if (few || gives_as_much(operand, *format)) words.emplace_back(format->name);
    }
  }
}

size_t StepJudge::CountNumbers(const TensorData& data, size_t most) {
  std::set<double> numbers;
  for (int64_t i = 0; i < data.size() && numbers.size() < most; ++i) {
    if (data.At(i) != 0 && std::isfinite(data.At(i))) numbers.insert(std::fabs(data.At(i)));
  }
  return numbers.size();
}

void StepJudge::JoinFew(size_t last, const Classification& stored, std::vector<Explanation>* found) {
  const Explanation simplest = found->front();
  if (simplest.unrounded.empty() && simplest.changed.empty()) return;
  const bool few = CountNumbers(values_.at(steps_[last].step.as), kFewNumbers) < kFewNumbers;
  // In a narrow sum whose order was not tried, an operand's rounding can compensate for the order.
  if (!few && simplest.plain) return;
  std::vector<Explanation> others;
  if (few && simplest.changed.empty()) InOtherFormats(last, &others);
  std::erase_if(others, [&](const Explanation& each) {
    return each.classification.reproduced < simplest.classification.reproduced;
  });
  const bool is_stored = std::any_of(found->begin(), found->end(), [](const Explanation& each) {
    return each.unrounded.empty() && each.changed.empty();
  });
  if (!is_stored) Keep(last, {}, "step", stored, &others);
  // The unrounded value of each operand is unknown too: it could be computed in several ways.
  if (few && simplest.changed.empty()) {
    for (const std::string& operand : ComputedOperands(last)) {
      Explanation also = simplest;
      if (also.unrounded.insert({last, operand}).second) others.push_back(std::move(also));
    }
  }
  for (Explanation& each : others) {
    each.few = true;
    found->push_back(std::move(each));
  }
}

void StepJudge::JoinNarrow(size_t last, const std::vector<Explanation>& found, Classification* result) const {
  const Explanation& simplest = found.front();
  const bool as_stored = simplest.unrounded.empty() && simplest.changed.empty();
  // Two forms of the steps inside an op give one rounding two names; their sums are the same.
  const bool other_steps = has_steps_.contains(last) && !SumsNarrow(*result);
  if (!alone_ || (as_stored && (simplest.plain || !sums_.contains(last) || other_steps))) return;
  std::set<PrecisionModel> models(result->models.begin(), result->models.end());
  std::set<PrecisionModel> proved(result->models_proved.begin(), result->models_proved.end());
  const size_t before = models.size();
  for (const Explanation& each : found) {
    const Classification& other = each.classification;
    // Each plain model in turn replaced the flushed results, so all of them give zero there.
    const bool alike = !each.changed.empty() && each.changed == simplest.changed;
    if (!alike && !each.few &&
        (each.plain || !each.unrounded.empty() || !each.changed.empty() ||
         other.reproduced < simplest.classification.reproduced))
      continue;
    models.insert(other.models.begin(), other.models.end());
    proved.insert(other.models_proved.begin(), other.models_proved.end());
  }
  if (models.size() > before) TakeModels(last, models, proved, result);
}

void StepJudge::TakeModels(size_t last, const std::set<PrecisionModel>& models,
                           const std::set<PrecisionModel>& proved, Classification* result) const {
  result->models.assign(models.begin(), models.end());
  result->models_proved.assign(proved.begin(), proved.end());
  result->kind = ClassificationKind::kIndistinguishable;
  result->facets = {};
  result->facets_in.clear();
  result->cuts.clear();
  ValueShape shape = *alone_;
  for (const PrecisionModel& model : models) {  // a form has steps of its own
    for (const auto& [cut, rounding] : model.cuts) {
      if (!Contains(shape.cut_points, cut)) shape.cut_points.push_back(cut);
    }
  }
  ProjectFacets(shape, result);
  SetLabel(shape, values_.at(steps_[last].step.as).dtype, ErrorsOf::kSeveralSteps, result);
}

std::optional<Classification> StepJudge::LeaveOpen(size_t last, const Classification& narrow) {
  const std::string& value = steps_[last].step.as;
  const auto plain = [&](const PrecisionModel& model) { return IsPlain(model, value); };
  if (!narrow.fits || !alone_ || std::ranges::any_of(narrow.models, plain) ||
      std::ranges::none_of(narrow.models_proved, plain))
    return std::nullopt;
  const TensorData& observed = values_.at(value);
  const auto elements = ElementsToCheck(observed.shape, ClassifyOptions().likelihood_elements);
  const bool lines = alone_->has_steps && alone_->reduction_length > 1;
  const auto n = static_cast<double>(elements.size()) /
                 static_cast<double>(lines ? std::min(alone_->reduction_length, observed.size()) : 1);
  const double share = narrow.reproduced;
  if (ShareWith(last, {}, elements) < share - 3 * std::sqrt(n * share * (1 - share) + 1) / n)
    return std::nullopt;
  std::set<PrecisionModel> models(narrow.models.begin(), narrow.models.end());
  const std::set<PrecisionModel> proved(narrow.models_proved.begin(), narrow.models_proved.end());
  std::copy_if(proved.begin(), proved.end(), std::inserter(models, models.end()), plain);
  Classification open = narrow;
  open.piece = "step";
  open.rests_on_likelihood = true;
  TakeModels(last, models, proved, &open);
  for (const std::string& operand : ComputedOperands(last)) open.reads[NameOfUse(last, operand)] = {"stored"};
  return open;
}

}  // namespace ulpscope
