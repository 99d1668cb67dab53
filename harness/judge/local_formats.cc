// Operands that were read in another format, flushed, or as if they were zero.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "harness/base/find.h"
#include "harness/judge/classify_options.h"
#include "harness/judge/forms.h"
#include "harness/judge/step_judge.h"
#include "harness/model/tensor_diff.h"
#include "harness/num/float_format.h"

namespace ulpscope {

void StepJudge::FinerCopy(size_t last, std::vector<Explanation>* found) {
  const auto operands = ComputedOperands(last);
  if (steps_[last].step.op != "cast" || operands.size() != 1) return;
  const TensorData &stored = *DataOf(operands[0]), &copied = values_.at(steps_[last].step.as);
  const FloatFormat& narrow = *FormatOf(stored.dtype);
  if (!IsFloating(copied.dtype) || FormatOf(copied.dtype)->precision <= narrow.precision) return;
  int64_t finer = 0;
  for (int64_t k = 0; k < copied.size(); ++k) {
    if (RoundTo(copied.At(k), narrow) != stored.At(k)) return;
    finer += copied.At(k) != stored.At(k) ? 1 : 0;
  }
  if (2 * finer < copied.size()) return;
  TryChanged(last, {{operands[0], {.instead = &copied}}}, {{NameOfUse(last, operands[0]), "unrounded"}},
             found);
}

void StepJudge::NameCopies(size_t last, Explanation* each) const {
  for (const std::string& operand : ComputedOperands(last)) {
    const auto by = ComputedBy(operand);
    if (!each->unrounded.contains({last, operand}) || !by || steps_[*by].step.op != "cast") continue;
    const std::string& source = steps_[*by].step.of.front().name;
    const TensorData *copied = DataOf(source), *stored = DataOf(steps_[*by].step.as);
    if (copied == nullptr || stored == nullptr || each->unrounded.contains({*by, source})) continue;
    for (const FloatFormat* format : {&Bfloat16(), &Binary16(), &Tf32()}) {
      int64_t same = 0;
      for (int64_t k = 0; k < stored->size(); ++k)
        same += RoundTo(stored->At(k), *format) == copied->At(k) ? 1 : 0;
      if (same < stored->size() || format->precision >= FormatOf(stored->dtype)->precision) continue;
      each->changed[NameOfUse(last, operand)] = std::string(format->name);
      break;
    }
  }
}

void StepJudge::SayWhatCountsAsZero(size_t last, Classification* unmodelled) {
  if (unmodelled->kind != ClassificationKind::kUnmodelled) return;
  for (const std::string& name : FloatingOperands(last)) {
    std::vector<Explanation> found;
    Keep(last, {}, "step", Classify(last, Cut(last, {}, {{name, {.zero = true}}}), true), &found);
    if (found.empty() || !found.front().plain || found.front().classification.reproduced < kNearlyEvery)
      continue;
    unmodelled->says.push_back(
        {RemarkKind::kChange, fmt::format("as if {} were zero", NameOfUse(last, name))});
    unmodelled->label += "; " + unmodelled->says.back().text;
    return;
  }
}

void StepJudge::BecomeUnmodelled(const TensorData& observed, Classification* narrow) {
  narrow->kind = ClassificationKind::kUnmodelled;
  narrow->fits = false;
  narrow->models.clear();
  narrow->facets = {};
  for (auto* sets : {&narrow->facets_in, &narrow->cuts}) {
    for (auto& [name, roundings] : *sets) roundings.clear();
  }
  if (IsZero(observed))
    narrow->says = {
        {RemarkKind::kLost, fmt::format("every result is zero where exact ones reach {:.3g}: no format shows",
                                        narrow->max_abs)}};
  else if (narrow->reproduced == 1)
    narrow->says = {
        {RemarkKind::kShare, "models that give all of the results, which so few leave to chance"}};
  else
    narrow->says = {{RemarkKind::kRejected, fmt::format("the nearest model gives {:.0f} % of the results",
                                                        100 * narrow->reproduced)}};
  narrow->label = "unmodelled: " + JoinTexts(narrow->says);
  narrow->labelled = FormatOfWhat::kNothing;
}

std::vector<std::string> StepJudge::FloatingOperands(size_t i) const {
  std::vector<std::string> floating;
  for (const Operand& operand : steps_[i].step.of) {
    if (operand.IsScalar() || Contains(floating, operand.name)) continue;
    if (const TensorData* data = DataOf(operand.name); data != nullptr && IsFloating(data->dtype))
      floating.push_back(operand.name);
  }
  return floating;
}

void StepJudge::InOtherFormats(size_t last, std::vector<Explanation>* found) {
  const auto floating = FloatingOperands(last);
  for (const FloatFormat* format : {&Bfloat16(), &Binary16(), &Tf32()}) {
    for (const auto& some : Combinations(floating)) {
      Changes changes;
      std::map<std::string, std::string> words;
      for (const std::string& name : some) {
        if (!LeavesNumbers(*DataOf(name), *format)) continue;
        changes[name] = {.format = format};
        words[NameOfUse(last, name)] = std::string(format->name);
      }
      if (!changes.empty()) TryChanged(last, changes, words, found);
    }
  }
}

StepJudge::Widened StepJudge::Widen(size_t last) const {
  Widened wide;
  for (const std::string& name : FloatingOperands(last)) {
    const TensorData& data = *DataOf(name);
    if (FormatOf(data.dtype)->precision >= Binary32().precision) continue;
    TensorData copy = TensorData::Zeros(DType::kFloat32, data.shape);
    for (int64_t k = 0; k < data.size(); ++k) copy.Set(k, data.At(k));
    wide.changes[name].instead = &wide.copies.emplace(name, std::move(copy)).first->second;
  }
  return wide;
}

void StepJudge::InNarrowSums(size_t last, const Classification& stored, std::vector<Explanation>* found) {
  const TensorData& observed = values_.at(steps_[last].step.as);
  const auto floating = FloatingOperands(last);
  const size_t numbers = CountNumbers(observed, kManyNumbers);
  if (!sums_.contains(last) || floating.empty() || numbers < kSomeNumbers) return;
  std::vector<Proposal> named;
  for (const FloatFormat* format : {&Binary16(), &Bfloat16()}) {
    named.push_back({.in = {}, .acc = SumsIn(*format)});
    named.push_back({.in = {}, .acc = {.format = format, .via_float32 = true}});
  }
  for (const FloatFormat* format : {&Bfloat16(), &Binary16()})
    named.push_back({.in = {}, .acc = {.format = &Binary32(), .partial = format, .combine = format}});
  const Widened wide = Widen(last);
  std::vector<std::pair<std::string, const FloatFormat*>> rounded{{"", nullptr}};
  for (const std::string& name : ComputedOperands(last)) {
    for (const FloatFormat* format : {&Bfloat16(), &Binary16(), &Tf32()}) {
      if (numbers >= kManyNumbers && format->precision < FormatOf(DataOf(name)->dtype)->precision &&
          LeavesNumbers(*DataOf(name), *format))
        rounded.emplace_back(name, format);
    }
  }
  const std::vector<Operand>& of = steps_[last].step.of;
  const TensorData* first = of.empty() ? nullptr : DataOf(of.front().name);
  const auto forms =
      first == nullptr ? std::vector<std::vector<Step>>() : FormsAroundSums(steps_[last].step, first->shape);
  for (const auto& [name, format] : rounded) {
    Changes changes = wide.changes;
    if (format != nullptr) changes[name].format = format;
    for (const auto& form : forms) {
      auto given = Classify(last, Cut(last, {}, changes, form), true, nullptr, named);
      if (!given || given->reproduced < 1) continue;
      // Only a few models were tested: no requested model that the full set of candidates leaves is excluded.
      given->models_proved = given->models;
      std::copy_if(stored.models_proved.begin(), stored.models_proved.end(),
                   std::back_inserter(given->models_proved),
                   [&](const PrecisionModel& model) { return IsPlain(model, steps_[last].step.as); });
      if (!std::exchange(given->rests_on_likelihood, true)) given->label = "likely " + given->label;
      const size_t before = found->size();
      Keep(last, {}, "step", std::move(given), found);
      if (found->size() == before) continue;
      if (format != nullptr) found->back().changed[NameOfUse(last, name)] = std::string(format->name);
      if (format == nullptr || found->size() >= kMostKept) return;
    }
  }
}

bool StepJudge::LeavesNumbers(const TensorData& data, const FloatFormat& format) {
  int64_t numbers = 0, left = 0;
  for (int64_t i = 0; i < data.size(); ++i) {
    if (data.At(i) == 0) continue;
    ++numbers;
    const double rounded = RoundTo(data.At(i), format);
    left += rounded != 0 && std::isfinite(rounded) ? 1 : 0;
  }
  return left * 2 > numbers;
}

void StepJudge::Flushed(size_t last, std::vector<Explanation>* found) {
  std::vector<std::string> tiny = FloatingOperands(last);
  std::erase_if(tiny, [&](const std::string& name) { return !HoldsSubnormals(*DataOf(name)); });
  Changes changes;
  std::map<std::string, std::string> words;
  for (const auto& some : Combinations(tiny)) {
    changes.clear();
    words.clear();
    for (const std::string& name : some) {
      changes[name] = {.flush = true};
      words[NameOfUse(last, name)] = kFlushed;
    }
    TryChanged(last, changes, words, found);
  }
  const std::string& value = steps_[last].step.as;
  for (const bool operands : {false, true}) {
    if (operands && changes.empty()) return;
    auto both = operands ? words : std::map<std::string, std::string>();
    both[value] = kFlushed;
    for (const TensorData& restored : Unflushed(last, operands ? changes : Changes()))
      TryChanged(last, operands ? changes : Changes(), both, found, &restored);
  }
}

bool StepJudge::IsZero(const TensorData& data) {
  for (int64_t i = 0; i < data.size(); ++i) {
    if (data.At(i) != 0) return false;
  }
  return true;
}

void StepJudge::OutOfRange(size_t last, std::vector<Explanation>* found) {
  for (const std::string& name : FloatingOperands(last)) {
    const TensorData& data = *DataOf(name);
    bool lost = FormatOf(data.dtype)->emin < Binary16().emin;
    for (int64_t i = 0; i < data.size() && lost; ++i) lost = RoundTo(data.At(i), Binary16()) == 0;
    if (lost)
      TryChanged(last, {{name, {.format = &Binary16()}}},
                 {{NameOfUse(last, name), std::string(Binary16().name)}}, found);
  }
}

void StepJudge::TryChanged(size_t last, const Changes& changes,
                           const std::map<std::string, std::string>& words, std::vector<Explanation>* found,
                           const TensorData* observed) {
  const size_t before = found->size();
  Keep(last, {}, "step", Classify(last, Cut(last, {}, changes), true, observed), found);
  if (found->size() > before) found->back().changed = words;
}

bool StepJudge::HoldsSubnormals(const TensorData& data) {
  for (int64_t i = 0; i < data.size(); ++i) {
    if (IsSubnormal(data.At(i), data.dtype)) return true;
  }
  return false;
}

std::vector<TensorData> StepJudge::Unflushed(size_t last, const Changes& changes) const {
  std::vector<TensorData> restored;
  const auto piece = Cut(last, {}, changes);
  if (!piece) return restored;
  const std::string& name = steps_[last].step.as;
  const TensorData& observed = values_.at(name);
  std::vector<int64_t> zeros;
  for (int64_t i = 0; i < observed.size(); ++i) {
    if (observed.At(i) == 0) zeros.push_back(i);
  }
  auto oracle = open_(piece->program, piece->inputs, {.unrounded = {}, .natural = true});
  if (!oracle || zeros.empty()) return restored;
  for (const auto& hypothesis : (*oracle)->Bank(name, observed.dtype)) {
    const auto given = hypothesis->Stored(hypothesis->Orders().front(), zeros);
    TensorData data = observed;
    bool any = false;
    for (size_t i = 0; i < zeros.size(); ++i) {
      if (!IsSubnormal(given[i], data.dtype)) continue;
      data.Set(zeros[i], given[i]);
      any = true;
    }
    if (any && !Contains(restored, data)) restored.push_back(std::move(data));
  }
  return restored;
}

}  // namespace ulpscope
