// Extracts subprograms and has them classified.
#include <algorithm>
#include <utility>

#include "harness/judge/classify.h"
#include "harness/judge/forms.h"
#include "harness/judge/label.h"
#include "harness/judge/step_judge.h"
#include "harness/model/tensor_diff.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"
#include "harness/words/ops.h"

namespace ulpscope {

std::optional<StepJudge::Piece> StepJudge::Cut(size_t last, const Uses& unrounded, const Changes& changes,
                                               const std::vector<Step>& form) const {
  std::set<size_t> inside{last};
  std::vector<size_t> pending{last};
  while (!pending.empty()) {
    const size_t i = pending.back();
    pending.pop_back();
    for (const Operand& operand : steps_[i].step.of) {
      if (operand.IsScalar() || !ReadsInside(i, operand.name, unrounded)) continue;
      const size_t maker = made_by_.at(operand.name);
      if (inside.insert(maker).second) pending.push_back(maker);
    }
  }
  Piece piece;
  piece.program.id = case_.id;
  piece.program.observe = {steps_[last].step.as};
  for (const size_t i : inside) {
    const auto other = forms_.find(i);
    const std::vector<Step> own =
        i != last && other != forms_.end() ? other->second : std::vector<Step>{steps_[i].step};
    for (Step step : i == last && !form.empty() ? form : own) {
      for (Operand& operand : step.of) {
        if (operand.IsScalar()) continue;
        if (operand.name.starts_with(steps_[i].step.as + ".")) {
          if (IsContracted(operand.name)) piece.unrounded.insert(operand.name);
          continue;
        }
        const bool makes = ReadsInside(i, operand.name, unrounded);
        if (makes) {
          if (!IsArrangement(made_by_.at(operand.name))) piece.unrounded.insert(operand.name);
          continue;
        }
        // The same value may be made inside for another use.
        const auto maker = made_by_.find(operand.name);
        const std::string name = maker != made_by_.end() && inside.contains(maker->second)
                                     ? operand.name + "@stored"
                                     : operand.name;
        const Changes& read = i == last ? changes : ChangesOf(i);
        const auto change = read.find(operand.name);
        const std::string as = i == last || change == read.end() ? name : name + "@in_" + step.as;
        if (!AddTensor(operand.name, as, change == read.end() ? Change() : change->second, &piece))
          return std::nullopt;
        operand.name = as;
      }
      piece.program.program.push_back(Inside(steps_[i].scopes, std::move(step)));
    }
  }
  return piece;
}

const StepJudge::Changes& StepJudge::ChangesOf(size_t i) const {
  static const Changes kNone;
  const auto known = changes_.find(i);
  return known == changes_.end() ? kNone : known->second;
}

bool StepJudge::ReadsInside(size_t i, const std::string& operand, const Uses& unrounded) const {
  return made_by_.contains(operand) && unrounded.contains({i, operand});
}

const TensorData* StepJudge::DataOf(const std::string& name) const {
  if (const auto input = inputs_.find(name); input != inputs_.end()) return &input->second;
  const auto value = values_.find(name);
  return value == values_.end() ? nullptr : &value->second;
}

bool StepJudge::AddTensor(const std::string& name, const std::string& as, const Change& change,
                          Piece* piece) const {
  if (piece->program.FindTensor(as) != nullptr) return true;
  const TensorData* data = DataOf(name);
  if (data == nullptr) return false;
  TensorData copy = change.instead != nullptr ? *change.instead : *data;
  for (int64_t k = 0; IsFloating(copy.dtype) && k < copy.size(); ++k) {
    const double number = copy.At(k);
    if (change.format != nullptr) copy.Set(k, RoundTo(number, *change.format));
    if (change.zero || (change.flush && IsSubnormal(number, copy.dtype))) copy.Set(k, 0);
  }
  TensorSpec spec;
  spec.name = as;
  spec.dtype = copy.dtype;
  spec.shape = copy.shape;
  piece->program.tensors.push_back(std::move(spec));
  piece->inputs.emplace(as, std::move(copy));
  return true;
}

ErrorsOf StepJudge::OwnErrors() const {
  return steps_.size() > 1 ? ErrorsOf::kStepOfProgram : ErrorsOf::kThisStep;
}

std::optional<Classification> StepJudge::Classify(size_t last, const std::optional<Piece>& piece,
                                                  bool natural, const TensorData* observed,
                                                  std::vector<Proposal> named) {
  if (!piece) return std::nullopt;
  const std::string& name = steps_[last].step.as;
  auto oracle = open_(piece->program, piece->inputs, {.unrounded = piece->unrounded, .natural = natural});
  if (!oracle) return std::nullopt;
  const auto shape = (*oracle)->Describe(name);
  if (shape && shape->reduction_length > 0 && piece->unrounded.empty()) sums_.insert(last);
  if (shape && shape->has_steps && piece->unrounded.empty()) has_steps_.insert(last);
  if (shape && piece->unrounded.empty() && !natural) alone_ = *shape;
  ClassifyOptions options;
  options.search = !natural;
  options.named = std::move(named);
  options.errors = OwnErrors();
  if (const auto also = looked_at_.find(name); also != looked_at_.end()) options.also = also->second;
  options.settle = !ReadsComputedNumbers(last);
  // Steps that read computed operands gather every term again, so fewer elements are tested if sums are long.
  if (const int64_t terms = shape ? shape->terms : 1; !piece->unrounded.empty()) {
    options.most_work = kGrownWork;
    options.most_terms = kGrownTerms;
    options.most_elements =
        std::clamp(kGrownTerms / std::max<int64_t>(1, 4 * terms), kFewestGrown, options.most_elements);
  }
  Classification found =
      ClassifyValue(**oracle, name, observed == nullptr ? values_.at(name) : *observed, options);
  counts_ += (*oracle)->Counts();
  // A form of several steps is one step all the same.
  if (!piece->unrounded.empty() || piece->program.program.size() > 1)
    LeaveOut(piece->unrounded, *oracle.value(), last, &found);
  return found;
}

RoundSpec StepJudge::CoarsestOf(const std::map<std::string, RoundSpec>& cuts) {
  RoundSpec coarsest;
  for (const auto& [cut, rounding] : cuts) {
    if (rounding.bits() < coarsest.bits()) coarsest = rounding;
  }
  return coarsest;
}

bool StepJudge::TakesNumber(size_t i) const {
  const Step& step = steps_[i].step;
  return std::ranges::any_of(step.of, [](const Operand& operand) { return operand.IsScalar(); }) ||
         step.attrs.contains("alpha") || step.attrs.contains("value");
}

const FloatFormat& StepJudge::NarrowestOf(const std::set<std::string>& values, size_t last) const {
  const FloatFormat* narrowest = FormatOf(values_.at(steps_[last].step.as).dtype);
  for (const std::string& value : values) {
    const TensorData* data = DataOf(value);
    const FloatFormat* format = data == nullptr ? nullptr : FormatOf(data->dtype);
    if (format != nullptr && format->precision < narrowest->precision) narrowest = format;
  }
  return *narrowest;
}

void StepJudge::LeaveOut(const std::set<std::string>& unrounded, const CaseOracle& oracle, size_t last,
                         Classification* found) const {
  const std::string& name = steps_[last].step.as;
  auto shape = oracle.Describe(name);
  if (!shape) return;
  // The numbers of other steps are those steps' own.
  const auto foreign_number = [&](const std::string& operand) {
    return operand.starts_with(kScalar) && !operand.ends_with("@" + name) &&
           (operand != std::string(kScalar) + steps_[last].step.op || !TakesNumber(last));
  };
  std::erase_if(shape->operands, foreign_number);
  std::erase_if(shape->cut_points, [&](const std::string& cut) {
    return unrounded.contains(cut) ||
           std::ranges::any_of(unrounded, [&](const auto& each) { return cut.starts_with(each + "."); });
  });
  // A conforming step does not compute with a number that a format narrower than any result's would change.
  const auto reads_as_said = [&](const PrecisionModel& model) {
    return std::ranges::all_of(model.in, [&](const auto& in) {
      return !foreign_number(in.first) || IsPlainScalar(in.second, NarrowestOf(unrounded, last));
    });
  };
  const bool computed_in_float32 = FormatOf(values_.at(name).dtype)->precision <= Binary32().precision;
  const auto strip = [&](std::vector<PrecisionModel>* models) {
    std::set<PrecisionModel> left;
    std::erase_if(*models, [&](const PrecisionModel& model) { return !reads_as_said(model); });
    for (PrecisionModel& model : *models) {
      // The steps inside the op that gave an operand are no steps of this one.
      const size_t foreign = std::erase_if(model.cuts, [&](const auto& cut) {
        return std::ranges::any_of(unrounded, [&](const std::string& each) {
          return cut.first == each || cut.first.starts_with(each + ".");
        });
      });
      // Rounding an intermediate inside a step to the format of computation is no additional rounding.
      const size_t held = std::erase_if(model.cuts, [&](const auto& cut) {
        return computed_in_float32 && cut.second.rounds_to(Binary32()) && cut.first.starts_with(name + ".");
      });
      if (foreign + held > 0) model.mid = CoarsestOf(model.cuts);
      if (model.mid.rounds_to(Binary32()) && model.cuts.empty()) model.mid = {};
      // Nor are their sums those of a step that has none.
      if (!HasFormat(last) && !model.acc.wide()) model.acc = SumsIn(Binary32());
      std::erase_if(model.in, [&](const auto& in) { return foreign_number(in.first); });
      left.insert(std::move(model));
    }
    models->assign(left.begin(), left.end());
  };
  strip(&found->models);
  strip(&found->models_proved);
  found->fits = found->fits && !found->models.empty();
  found->facets = {};
  found->facets_in.clear();
  found->cuts.clear();
  ProjectFacets(*shape, found);
  // If operands are read before their rounding, the error is that of all the steps together, not this step's own.
  SetLabel(*shape, values_.at(name).dtype, unrounded.empty() ? OwnErrors() : ErrorsOf::kSeveralSteps, found);
}

}  // namespace ulpscope
