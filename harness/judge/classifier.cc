// The course of a classification: evidence, ranking, conclusion, outcome; and values that have no precision to name.
#include "harness/judge/classifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/base/text.h"
#include "harness/judge/label.h"
#include "harness/judge/model_hash.h"
#include "harness/judge/mutants.h"
#include "harness/judge/rule_numbers.h"
#include "harness/judge/sample.h"
#include "harness/model/conforming.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

Classification Classifier::Run() {
  result_.elements = observed_.size();
  const auto shape = oracle_.Describe(value_);
  if (shape && shape->shape != observed_.shape) return WrongShape(shape->shape);
  if (!IsFloating(observed_.dtype)) return WholeNumbers(options_.settle && shape && shape->settled);
  if (!shape) return NoReference(shape.error().message);
  shape_ = *shape;
  if (observed_.dtype == shape_.declared) result_.as_exact = shape_.as_exact;
  if (shape_.reduction_length == 0 && !shape_.has_steps) result_.as_exact.any_acc = true;
  if (!shape_.has_products) result_.as_exact.any_prod = true;
  MeasureErrors();
  if (only_ == nullptr) CheckZeroSigns();
  if (elements_.empty()) return NoReference("no element of this value has a finite exact reference");
  spent_ = shape_.most_models * kTermsOfListing;
  if (TooMuch()) return NotJudged();
  spent_ = 0;
  WalkAll();
  return GaveUp() ? NotJudged() : result_;
}

std::string_view Classifier::Walk(std::span<const Rule> rules, const std::function<size_t()>& models) {
  std::string_view decided;
  size_t before = models();
  for (const Rule& rule : rules) {
    if (IsSwitchedOff(rule.name) || !rule.when(*this)) continue;
    (this->*rule.apply)();
    const size_t after = models();
    if (after != before) decided = rule.name;
    before = after;
  }
  return decided;
}

void Classifier::WalkAll() {
  Walk(EvidenceRules(), [] { return size_t{0}; });
  if (GaveUp()) return;
  const auto decide = [this](std::string_view rule) {
    if (!rule.empty()) result_.decided_by = rule;
  };
  decide("bank");
  now_.likely = HardOnly() ? Survivors() : Likely();
  if (GaveUp()) return;
  decide(ranking_.decided_by);
  decide(Walk(ConclusionRules(), [this] { return HashOfModels(now_.likely); }));
  decide(Walk(OutcomeRules(), [this] { return HashOfModels(result_.models); }));
}

void Classifier::TryBank() { TryAll(oracle_.Bank(value_, observed_.dtype)); }

void Classifier::TryNamed() {
  std::set<PrecisionModel> known;
  for (const Trial& trial : trials_) known.insert(trial.hypothesis->model());
  auto named = oracle_.Propose(value_, observed_.dtype, options_.named);
  std::erase_if(named, [&](const auto& hypothesis) {
    return known.contains(hypothesis->model()) ||
           (hypothesis->model().acc == JoinedWider() && shape_.reduction_length < kLeastJoined);
  });
  TryAll(std::move(named));
}

Classification Classifier::NoReference(const std::string& why) {
  result_.kind = ClassificationKind::kNoReference;
  result_.notes.push_back({RemarkKind::kNoReference, why});
  result_.label = "no reference";
  return result_;
}

Classification Classifier::WrongShape(const std::vector<int64_t>& due) {
  result_.kind = ClassificationKind::kWrongShape;
  result_.label = fmt::format("of shape {}, where the program has {}",
                              Describe(observed_.dtype, observed_.shape), Describe(observed_.dtype, due));
  result_.says = {{RemarkKind::kWrong, result_.label}};
  return result_;
}

Classification Classifier::WholeNumbers(bool settled) {
  result_.kind = ClassificationKind::kNotFloating;
  result_.label = "not a floating-point value";
  if (!settled) return result_;
  const auto all = ElementsToCheck(observed_.shape, options_.most_elements);
  const auto references = oracle_.References(value_, all);
  int64_t wrong = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (references[i].kind != ReferenceKind::kExact || references[i].lo != 0) continue;
    ++result_.checked;
    const double stored = observed_.At(all[i]), due = references[i].hi;
    if (stored == due) continue;
    if (wrong++ > 0) continue;
    result_.shown_by = {all[i]};
    result_.label = fmt::format("first [{}] = {} against {}", Join(Coordinates(all[i], observed_.shape), ","),
                                stored, due);
  }
  if (wrong > 0) {
    result_.kind = ClassificationKind::kWrongValue;
    result_.label = fmt::format("not what the program gives in {} of {} elements, {}", wrong, result_.checked,
                                result_.label);
    result_.says = {{RemarkKind::kWrong, result_.label}};
  } else if (result_.checked > 0) {
    result_.label = fmt::format("exact: what the program gives ({} of {} elements looked at)",
                                result_.checked, result_.elements);
  }
  return result_;
}

int64_t Classifier::WorkOf(size_t elements) const {
  return std::min(static_cast<int64_t>(elements) * shape_.work_of_one, shape_.work_of_all);
}

int64_t Classifier::WorkOfOrders(const Hypothesis& hypothesis, size_t elements) const {
  return static_cast<int64_t>(hypothesis.orders().size()) * WorkOf(elements);
}

int64_t Classifier::WorkOfLikelihood() const {
  const auto left = std::ranges::count_if(trials_, [](const Trial& trial) { return trial.survived; });
  return HardOnly() ? 0 : left * kOrdersOfWeighing * WorkOf(kElementsOfWeighing);
}

bool Classifier::WillBeTooMuch(size_t models) {
  if (trials_.size() % kModelsBetweenLooks != 0) return false;
  if (trials_.size() * kPartOfModels < models || options_.most_work <= 0 || shape_.cut_points.size() < 2)
    return false;
  const double all = static_cast<double>(spent_ + WorkOfLikelihood()) * static_cast<double>(models) /
                     static_cast<double>(trials_.size());
  stopped_ = stopped_ || all > 2 * static_cast<double>(options_.most_work);
  return stopped_;
}

Classification Classifier::NotJudged() {
  result_.kind = ClassificationKind::kNotJudged;
  result_.says = {
      {RemarkKind::kTooManyModels,
       fmt::format(
           "not judged end to end: {} intermediate roundings and their sums give too many candidate models",
           shape_.cut_points.size())}};
  SetLabel(shape_, observed_.dtype, options_.errors, &result_);
  return result_;
}

void Classifier::MeasureErrors() {
  auto all = only_ != nullptr ? *only_ : ElementsToCheck(observed_.shape, options_.most_elements);
  if (only_ == nullptr && shape_.reduction_length == 0) {
    std::set<int64_t> more(options_.also.begin(), options_.also.end());
    for (const int64_t element : all) more.erase(element);
    all.insert(all.end(), more.begin(), more.end());
  }
  const auto references = oracle_.References(value_, all);
  const FloatFormat& format = *FormatOf(observed_.dtype);
  int64_t undecided = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const Reference& reference = references[i];
    const double stored = observed_.At(all[i]);
    if (reference.kind == ReferenceKind::kUndecided) {
      ++undecided;
      continue;
    }
    if (reference.kind == ReferenceKind::kDomain) continue;
    elements_.push_back(all[i]);
    stored_.push_back(stored);
    references_.push_back(reference);
    result_.max_ulp = std::max(result_.max_ulp, std::fabs(UlpError(stored, reference.value(), format)));
    const double error = DistanceFrom(reference, stored);
    result_.max_abs = std::max(result_.max_abs, std::isnan(error) ? kInf : error);
  }
  result_.checked = static_cast<int64_t>(elements_.size());
  if (undecided > 0)
    result_.notes.push_back(
        {RemarkKind::kUndecided, fmt::format("{} element(s) are undecided by the oracle", undecided)});
}

bool Classifier::IsAsAsked(const PrecisionModel& model) const {
  return IsConforming(model, *FormatOf(observed_.dtype), kRequested);
}

bool Classifier::MayBeDoubted() const {
  return !now_.likely.empty() && JudgesAll() && !shape_.has_steps && sample_.size() >= kFaithfulLeast;
}

bool Classifier::AnySurvived() const {
  return std::ranges::any_of(trials_, [](const Trial& trial) { return trial.survived; });
}

std::set<PrecisionModel> Classifier::Survivors() const {
  std::set<PrecisionModel> left;
  for (const Trial& trial : trials_) {
    if (trial.survived) left.insert(trial.hypothesis->model());
  }
  return left;
}

}  // namespace ulpscope
