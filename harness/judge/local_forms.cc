// Forms of a step: other steps that give the same bits.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/as_written.h"
#include "harness/judge/classify_options.h"
#include "harness/judge/forms.h"
#include "harness/judge/sample.h"
#include "harness/judge/step_judge.h"
#include "harness/num/float_format.h"

namespace ulpscope {

std::vector<std::vector<Step>> StepJudge::FormsOf(size_t i) const {
  return OtherForms(steps_[i].step, FormatOf(values_.at(steps_[i].step.as).dtype));
}

std::string StepJudge::NameOfForm(size_t last, const std::vector<Step>& form, const Changes& changes) {
  std::string name = DescribeForm(steps_[last].step, form);
  if (name.empty()) return name;
  // A form is a cause only if it gives every bit that is looked at.
  const auto elements =
      ElementsToCheck(values_.at(steps_[last].step.as).shape, ClassifyOptions().most_elements);
  return GivenByOne(last, Cut(last, {}, changes, form), elements) ? name : "";
}

bool StepJudge::GivenByOne(size_t last, const std::optional<Piece>& piece,
                           const std::vector<int64_t>& elements) {
  if (!piece) return false;
  const std::string& name = steps_[last].step.as;
  const auto oracle =
      open_(piece->program, piece->inputs, {.unrounded = piece->unrounded, .as_written = true});
  if (!oracle || !(*oracle)->Describe(name)) return false;
  const bool given = IsGivenAsWritten(**oracle, name, values_.at(name), elements);
  counts_ += (*oracle)->Counts();
  return given;
}

void StepJudge::TellForms(std::map<std::string, Classification>* judged) {
  for (size_t last = 0; last < steps_.size(); ++last) {
    const auto elements = looked_at_.find(steps_[last].step.as);
    const auto result = judged->find(steps_[last].step.as);
    if (elements == looked_at_.end() || result == judged->end() || !values_.contains(result->first) ||
        IsArrangement(last) || !IsMeasured(result->second.kind) || !result->second.form.empty())
      continue;
    const bool as_stored = std::ranges::all_of(
        result->second.reads, [](const auto& read) { return Contains(read.second, "stored"); });
    if (as_stored) TellForm(last, elements->second, &result->second);
  }
}

void StepJudge::TellForm(size_t last, const std::vector<int64_t>& elements, Classification* result) {
  const TensorData& observed = values_.at(steps_[last].step.as);
  auto forms = FormsOfLastBits(steps_[last].step);
  if (forms.empty() || !IsFloating(observed.dtype)) return;
  const Widened wide = Widen(last);
  if (GivenByOne(last, Cut(last, {}), elements)) return;
  // Steps that are not rounded one by one may give the same as another form: each form that does is named.
  constexpr size_t kReadable = 2;
  std::vector<std::string> names;
  for (const auto& form : forms) {
    if (!GivenByOne(last, Cut(last, {}, wide.changes, form), elements)) continue;
    const std::string name = NameOfForm(last, form, wide.changes);
    if (!name.empty() && !Contains(names, name)) names.push_back(name);
  }
  if (names.empty()) return;
  const size_t others = names.size() - std::min(names.size(), kReadable);
  names.resize(names.size() - others);
  result->form = Join(names, " or ");
  if (others > 0) result->form += fmt::format(" or one of {} other forms", others);
  ShowWritten(last, result);
}

}  // namespace ulpscope
