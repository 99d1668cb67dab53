// Judges each step of a program: explanations of its results, tried from the plainest on.
#include "harness/judge/local.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/as_written.h"
#include "harness/judge/classify_options.h"
#include "harness/judge/forms.h"
#include "harness/judge/label.h"
#include "harness/judge/sample.h"
#include "harness/judge/step_judge.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

std::map<std::string, Classification> StepJudge::Run() {
  std::map<std::string, Classification> judged;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const std::string& name = steps_[i].step.as;
    if (!values_.contains(name)) continue;
    const auto shown = IsArrangement(i) ? judged.find(Shown(name)) : judged.end();
    auto classification = shown != judged.end() ? std::optional(shown->second)
                          : IsArrangement(i)    ? Classify(i, Cut(i, {}), true)
                                                : Judge(i);
    if (!classification) continue;
    if (shown != judged.end()) {  // its elements are elsewhere, and nothing is computed
      classification->label = fmt::format("the elements of {}", Shown(name));
      classification->labelled = FormatOfWhat::kNothing;
      classification->shown_by.clear();
      classification->as_written.clear();
      classification->shown_count = classification->shown_of = 0;
    }
    judged.emplace(name, std::move(*classification));
  }
  return judged;
}

std::string StepJudge::GivenOperand(size_t last) const {
  for (const Operand& operand : steps_[last].step.of) {
    const auto by = operand.IsScalar() ? std::nullopt : ComputedBy(operand.name);
    if (by && given_.contains(*by)) return Shown(operand.name);
  }
  return "";
}

Classification StepJudge::NotKnown(size_t last, const std::string& operand) {
  given_.insert(last);
  Classification none;
  none.elements = values_.at(steps_[last].step.as).size();
  none.notes = {
      {RemarkKind::kNoReference,
       fmt::format("it does not follow from {} as it is stored, and what {} was before it was rounded "
                   "has no reference",
                   operand, operand)}};
  none.label = "no reference";
  return none;
}

std::optional<Classification> StepJudge::Honest(size_t last) {
  const auto piece = Cut(last, {});
  if (!piece) return std::nullopt;
  auto oracle = open_(piece->program, piece->inputs, {});
  const auto shape = oracle ? (*oracle)->Describe(steps_[last].step.as) : Fail("no oracle");
  if (!shape || shape->most_models < kManyModels) return std::nullopt;
  std::vector<Explanation> found;
  Keep(last, {}, "step", Classify(last, piece, true), &found);
  const auto forms = FormsOf(last);
  for (const auto& form : forms)
    Keep(last, {}, "step", Classify(last, Cut(last, {}, {}, form), true), &found);
  // A product inside reads its operands in their own format, whatever step gave them.
  std::vector<Proposal> inner;
  const FloatFormat& own = *FormatOf(values_.at(steps_[last].step.as).dtype);
  for (const std::string& operand : shape->operands) {
    if (operand.starts_with(steps_[last].step.as + ".")) inner.push_back({.in = {{operand, ToNearest(own)}}});
  }
  const auto gives_all = [](const Explanation& each) {
    return each.classification.reproduced >= kNearlyEvery && !each.classification.models.empty();
  };
  const auto nothing_yet = [&] { return !inner.empty() && std::ranges::none_of(found, gives_all); };
  if (nothing_yet()) Keep(last, {}, "step", Classify(last, piece, true, nullptr, inner), &found);
  for (const auto& form : forms) {
    if (form.size() > 1 || !nothing_yet()) continue;
    const size_t before = found.size();
    Keep(last, {}, "step", Classify(last, Cut(last, {}, {}, form), true, nullptr, inner), &found);
    if (const auto said = SaidOfForm(form); found.size() > before && !said.empty())
      found.back().classification.notes.push_back({RemarkKind::kOrder, said});
  }
  std::erase_if(found, [&](const Explanation& each) { return !gives_all(each); });
  found = Best(last, std::move(found));
  if (found.empty()) return std::nullopt;
  Classification result = found.front().classification;
  for (const std::string& operand : ComputedOperands(last))
    result.reads[NameOfUse(last, operand)] = {"stored"};
  result.rests_on_likelihood = true;
  return result;
}

bool StepJudge::CastsDown(size_t last) const {
  if (steps_[last].step.op != "cast") return false;  // zeros and its like read nothing
  const TensorData* read = DataOf(steps_[last].step.of.front().name);
  return read != nullptr && IsFloating(read->dtype) &&
         FormatOf(read->dtype)->precision > FormatOf(values_.at(steps_[last].step.as).dtype)->precision;
}

void StepJudge::JoinOtherFormats(size_t last, std::vector<Explanation>* found) {
  if (std::ranges::none_of(*found, [](const Explanation& each) { return each.of_narrow_sums; })) return;
  std::vector<Explanation> others;
  InOtherFormats(last, &others);
  const double given = found->front().classification.reproduced;
  std::ranges::copy_if(others, std::back_inserter(*found),
                       [&](const Explanation& each) { return each.classification.reproduced >= given; });
}

void StepJudge::DropUnlikely(size_t last, const Classification& stored,
                             std::vector<Explanation>* found) const {
  const size_t numbers = CountNumbers(values_.at(steps_[last].step.as), kManyNumbers);
  const bool many = numbers >= kManyNumbers;
  std::erase_if(*found, [&](const Explanation& each) {
    const bool both = !each.plain && !each.unrounded.empty();
    if (!each.plain && numbers < kFewNumbers && RoundsTwice(each.classification)) return true;
    return GivesNoMore(last, each, stored) || (both && (each.classification.reproduced < 1 || !many));
  });
}

std::optional<Classification> StepJudge::Judge(size_t last) {
  alone_.reset();
  if (auto honest = Honest(last)) {
    if (!IsAsWritten(*honest)) ShowWritten(last, &*honest);
    return honest;
  }
  auto stored = Classify(last, Cut(last, {}), false);
  if (stored && stored->kind == ClassificationKind::kNoReference) given_.insert(last);
  // A cast's reference is the value that it rounds.
  if (stored && stored->kind == ClassificationKind::kExactOnly && stored->max_ulp == 0 && !CastsDown(last))
    exact_.insert(last);
  if (!stored || !IsMeasured(stored->kind)) return stored;
  // Libraries differ in the last bits of functions and norms: a narrow step that fits as many of them is no finding.
  if (FormatOf(values_.at(steps_[last].step.as).dtype)->precision > Binary16().precision) {
    if (auto open = LeaveOpen(last, *stored)) stored = std::move(open);
  }
  const auto operands = ComputedOperands(last);
  std::vector<Explanation> found = AsStoredOrBefore(last, *stored, operands);
  if (found.empty()) found = Otherwise(last, *stored, operands);
  // Narrow sums that give these bits in one of many orders are no better than an operand in another format that does.
  JoinOtherFormats(last, &found);
  if (!found.empty() && has_steps_.contains(last) && SumsNarrow(found.front().classification)) {
    // For steps inside an op there are no candidate models in which the sums alone are narrow.
    InNarrowSums(last, *stored, &found);
    found = Best(last, std::move(found));
  }
  DropUnlikely(last, *stored, &found);
  if (found.empty()) return Unexplained(last, std::move(*stored));
  JoinFew(last, *stored, &found);
  for (Explanation& each : found) {
    NameCopies(last, &each);
    OpenNeedless(last, &each);
  }
  const Explanation& simplest = found.front();
  NoteReads(last, simplest);
  Classification result = simplest.classification;
  JoinNarrow(last, found, &result);
  NoteNarrow(last, result);
  TellReads(last, found, &result);
  LoadInto(&result);
  OpenToRange(last, &result);
  OpenToSum(last, &result);
  const bool as_stored = simplest.unrounded.empty() && simplest.changed.empty();
  result.rests_on_likelihood = result.rests_on_likelihood || !as_stored;
  if (!simplest.changed.empty()) {
    // If an operand was read in another format, or as zero, the error stated is that from the stored operands.
    result.max_ulp = stored->max_ulp;
    result.max_abs = stored->max_abs;
  }
  if (!simplest.plain || !as_stored || !result.form.empty() || !IsAsWritten(result))
    ShowWritten(last, &result);
  return Said(steps_[last].step.as, std::move(result));
}

std::vector<StepJudge::Explanation> StepJudge::AsStoredOrBefore(size_t last, const Classification& stored,
                                                                const std::vector<std::string>& operands) {
  std::vector<Explanation> found;
  Keep(last, {}, "step", stored, &found);
  const bool plain = std::ranges::any_of(found, [](const Explanation& each) { return each.plain; });
  if (!plain) {
    const Widened wide = Widen(last);
    for (const auto& form : FormsOf(last)) {
      // A kernel computes in float32 before it rounds to 16 bits.
      const size_t first = found.size();
      if (!wide.changes.empty() && form.size() > 1)
        Keep(last, {}, "step", Classify(last, Cut(last, {}, wide.changes, form), true), &found);
      const size_t before = found.size();
      Keep(last, {}, "step", Classify(last, Cut(last, {}, {}, form), true), &found);
      for (size_t k = first; k < found.size(); ++k)
        found[k].classification.form = NameOfForm(last, form, k < before ? wide.changes : Changes());
      // A step that reads this value unrounded reads the result of this form.
      if (form.size() == 1 && found.size() > before && found.back().plain) forms_.emplace(last, form);
    }
  }
  std::set<Uses> tried;
  Grow(last, operands, Before::kAsExplained, true, &tried, &found);
  // A kernel may recompute an operand from that operand's stored operands, and store it from something else.
  const auto none_plain = [&] {
    const auto best = Best(last, found);
    return best.empty() || !best.front().plain || best.front().IsOdd();
  };
  for (const Before before : {Before::kStored, Before::kUpToSums, Before::kFromSums, Before::kUnrounded}) {
    if (none_plain()) Grow(last, operands, before, true, &tried, &found);
  }
  if (none_plain()) GrowForms(last, operands, &found);
  // A kernel that keeps its results in registers rounds nothing for several steps.
  if (none_plain()) {
    if (const Uses uses = SearchUses(last); !uses.empty() && tried.insert(uses).second)
      Keep(last, uses, NameOf(uses), Classify(last, Cut(last, uses), true), &found);
  }
  if (none_plain()) GrowNarrow(last, operands, &found);
  found = Best(last, std::move(found));
  // An explanation that reproduces no more than the stored operands do must not hide others.
  std::erase_if(found, [&](const Explanation& each) { return GivesNoMore(last, each, stored); });
  return found;
}

std::vector<StepJudge::Explanation> StepJudge::Otherwise(size_t last, const Classification& stored,
                                                         const std::vector<std::string>& operands) {
  std::vector<Explanation> found;
  // If subnormals are dropped, a format of a smaller range drops them too.
  Flushed(last, &found);
  if (!found.empty() && IsZero(values_.at(steps_[last].step.as))) OutOfRange(last, &found);
  if (found.empty()) InOtherFormats(last, &found);
  found = Best(last, std::move(found));
  if (found.empty()) {
    std::set<Uses> tried;
    Grow(last, operands, Before::kAsExplained, false, &tried, &found);
    found = Best(last, std::move(found));
  }
  if (found.empty()) FinerCopy(last, &found);
  if (found.empty()) InNarrowSums(last, stored, &found);
  return found;
}

bool StepJudge::RoundsTwice(const Classification& found) {
  const auto narrow = [](const FloatFormat* format) {
    return format != nullptr && format->precision <= Binary16().precision;
  };
  return SumsNarrow(found) && std::ranges::all_of(found.models, [&](const PrecisionModel& model) {
           return std::ranges::any_of(model.in, [&](const auto& in) { return narrow(in.second.format); });
         });
}

Classification StepJudge::Unexplained(size_t last, Classification stored) {
  if (const std::string operand = GivenOperand(last); !operand.empty()) return NotKnown(last, operand);
  if (auto open = LeaveOpen(last, stored)) return *open;
  if (stored.fits) BecomeUnmodelled(values_.at(steps_[last].step.as), &stored);
  SayWhatCountsAsZero(last, &stored);
  stored.piece = "step";
  ShowWritten(last, &stored);
  return stored;
}

std::map<std::string, Classification> JudgeSteps(const Case& opened,
                                                 const std::map<std::string, TensorData>& inputs,
                                                 const std::map<std::string, TensorData>& values,
                                                 const OpenPiece& open, OracleCounts* counts,
                                                 const LookedAt& looked_at) {
  return StepJudge(opened, inputs, values, open, counts, looked_at).Run();
}

void TellForms(const Case& opened, const std::map<std::string, TensorData>& inputs,
               const std::map<std::string, TensorData>& values, const LookedAt& looked_at,
               const OpenPiece& open, OracleCounts* counts, std::map<std::string, Classification>* judged) {
  StepJudge(opened, inputs, values, open, counts, looked_at).TellForms(judged);
}

std::set<std::string> ChangedByOpening(const std::map<std::string, TensorData>& plain,
                                       const std::map<std::string, TensorData>& opened) {
  std::set<std::string> changed;
  for (const auto& [name, data] : plain) {
    const auto other = opened.find(name);
    if (other == opened.end() || !(other->second == data)) changed.insert(name);
  }
  return changed;
}

}  // namespace ulpscope
