// Likelihood: which of the models that are left give these bits, or err as these results do.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "harness/base/find.h"
#include "harness/judge/classifier.h"
#include "harness/judge/model_hash.h"
#include "harness/judge/rule_numbers.h"
#include "harness/judge/sample.h"
#include "harness/num/float_format.h"
#include "harness/num/tensor_data.h"
#include "harness/words/facets.h"

namespace ulpscope {

bool Classifier::IsKept(const Trial& trial) const {
  const auto& models = result_.models;
  return trial.survived && Contains(models, trial.hypothesis->model());
}

double Classifier::Reproduced() const {
  std::vector<const Trial*> likeliest;
  for (const Trial& trial : trials_) {
    if (IsKept(trial)) likeliest.push_back(&trial);
  }
  std::ranges::stable_sort(
      likeliest, [](const Trial* a, const Trial* b) { return a->log_likelihood > b->log_likelihood; });
  if (likeliest.size() > kMostReproducing) likeliest.resize(kMostReproducing);
  double most = 0;
  for (const Trial* trial : likeliest) {
    if (trial->match.matches > 0) return 1;
    most = std::max(most, ReproducedBy(*trial->hypothesis));
  }
  return most;
}

double Classifier::ReproducedBy(const Hypothesis& hypothesis) const {
  std::vector<int64_t> elements;
  std::vector<double> stored;
  const bool zeros = std::ranges::all_of(sample_stored_, [](double value) { return value == 0; });
  for (size_t i = 0; i < sample_.size(); ++i) {
    // What is masked away is zero in any arithmetic.
    if (sample_stored_[i] == 0 && !zeros) continue;
    const Interval range = hypothesis.Enclose(sample_[i]);
    if (!(range.hi - range.lo <= kNarrowedDown * Ulp(sample_stored_[i], *FormatOf(observed_.dtype))))
      continue;
    elements.push_back(sample_[i]);
    stored.push_back(sample_stored_[i]);
  }
  if (elements.size() * 2 < sample_.size()) {
    elements = sample_;
    stored = sample_stored_;
  }
  const auto known = static_cast<int>(hypothesis.orders().size());
  // Without a sum the first order stands for all: it rounds the steps inside an op.
  const int orders = hypothesis.order_free() ? std::min(known, 1) : known;
  size_t most = 0;
  for (int order = hypothesis.order_free() || known == 0 ? -1 : 0; order < orders; ++order) {
    most = std::max(most, elements.size() - DifferentValues(hypothesis.Stored(order, elements), stored));
  }
  return elements.empty() ? 0 : static_cast<double>(most) / static_cast<double>(elements.size());
}

void Classifier::ChooseSample() {
  const int64_t budget = std::clamp<int64_t>(kSampleTerms / std::max<int64_t>(1, shape_.terms),
                                             kFewestOfSample, options_.likelihood_elements);
  const size_t count = std::min(elements_.size(), static_cast<size_t>(budget));
  for (const int64_t at : Spread(std::ssize(elements_), static_cast<int64_t>(count))) {
    const auto pick = static_cast<size_t>(at);
    sample_.push_back(elements_[pick]);
    sample_stored_.push_back(stored_[pick]);
  }
}

std::pair<PrecisionModel, bool> Classifier::OnEachElement(PrecisionModel model) const {
  const bool rounds_steps = !model.cuts.empty();
  model.acc = {};
  if (rounds_steps) model.mid = {};
  std::erase_if(model.cuts, [&](const auto& cut) { return Contains(shape_.line_cuts, cut.first); });
  return {std::move(model), rounds_steps};
}

double Classifier::SampledOfLine() const {
  if (shape_.reduction_length < 2 || sample_.empty()) return 1;
  const auto sampled = static_cast<double>(sample_.size());
  return std::max(1.0, sampled / static_cast<double>(std::max<int64_t>(1, shape_.sums)));
}

std::set<PrecisionModel> Classifier::Likely() {
  ranking_ = {};
  if (sample_.empty()) ChooseSample();
  if (std::ranges::any_of(trials_, [](const Trial& trial) { return trial.survived; }))
    ranking_.decided_by = Walk(RankingRules(), [this] { return HashOfModels(ranking_.likely); });
  return std::move(ranking_.likely);
}

void Classifier::WeighAll() { ranking_.best = Weigh(sample_, sample_stored_); }

void Classifier::FitInside() {
  for (Trial& trial : trials_) {
    if (!trial.survived) continue;
    trial.log_likelihood = ranking_.best = 0;
    trial.residuals.fits = true;
  }
}

void Classifier::NoteTooNear() {
  for (const Trial& trial : trials_) {
    if (trial.survived && trial.residuals.too_near && trial.hypothesis->model().prod.none())
      ranking_.too_near.insert(trial.hypothesis->model());
  }
}

bool Classifier::IsExplanation(const Trial& trial) const {
  if (!trial.survived || !std::isfinite(trial.log_likelihood) || !Fits(trial)) return false;
  const PrecisionModel& model = trial.hypothesis->model();
  return shape_.has_steps || trial.match.matches > 0 || model.prod.none() ||
         !ranking_.too_near.contains(WithExactProducts(model));
}

bool Classifier::IsBiasedByForm(const Trial& trial) {
  const AccSpec& acc = trial.hypothesis->model().acc;
  return trial.match.matches == 0 && acc.wide() && acc.rounding != Rounding::kNearestEven;
}

void Classifier::LeaveBiasToForms() {
  double best = -kInf;
  for (const Trial& trial : trials_) {
    if (!IsExplanation(trial) || IsBiasedByForm(trial)) continue;
    ranking_.forms = true;
    best = std::max(best, trial.log_likelihood);
  }
  if (ranking_.forms) ranking_.best = best;
}

void Classifier::KeepLikely() {
  for (const Trial& trial : trials_) {
    if (ranking_.forms && IsBiasedByForm(trial)) continue;
    if (IsExplanation(trial) && trial.log_likelihood >= ranking_.best - std::log(options_.keep_factor))
      ranking_.likely.insert(trial.hypothesis->model());
  }
}

void Classifier::KeepAlikeInRows() {
  const double together = SampledOfLine();
  std::set<std::pair<PrecisionModel, bool>> elementwise;
  for (const PrecisionModel& model : ranking_.likely) elementwise.insert(OnEachElement(model));
  for (const Trial& trial : trials_) {
    if (ranking_.forms && IsBiasedByForm(trial)) continue;
    if (IsExplanation(trial) &&
        trial.log_likelihood >= ranking_.best - together * std::log(options_.keep_factor) &&
        elementwise.contains(OnEachElement(trial.hypothesis->model())))
      ranking_.likely.insert(trial.hypothesis->model());
  }
}

void Classifier::KeepOtherProducts() {
  const auto roundless = [](PrecisionModel model) {
    if (model.prod.rounds_to(Binary32())) model.prod = {};
    return model;
  };
  const bool matched = std::ranges::any_of(trials_, [&](const Trial& trial) {
    return trial.match.matches > 0 && ranking_.likely.contains(trial.hypothesis->model());
  });
  if (matched) return;
  std::set<PrecisionModel> alike;
  for (const PrecisionModel& model : ranking_.likely) alike.insert(roundless(model));
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (trial.survived && alike.contains(roundless(model))) ranking_.likely.insert(model);
  }
}

bool Classifier::Fits(const Trial& trial) const {
  const Residuals& residuals = trial.residuals;
  if (!shape_.has_steps || shape_.reduction_length < 2)
    return residuals.fits && !residuals.too_near && trial.fit >= options_.worst_fit;
  const int64_t sums = std::max<int64_t>(1, std::min(shape_.sums, result_.elements));
  // A few sums may all be nearer than they mostly are; and the other steps inside need not be rounded one by one, as orders have it:
  // what is too near for float32 was computed by fewer of them.
  const AccSpec& acc = trial.hypothesis->model().acc;
  const bool narrow = acc.bits() <= Binary16().precision;
  if (sums >= kFewestSums && narrow && residuals.too_near) return false;
  const auto together = static_cast<double>(result_.elements) / static_cast<double>(sums);
  // Which way lines lean is asked of lines (DoubtLines): where an eps outweighs all squares, every line has the one inverse deviation,
  // and its rounding, and so many elements are not so many errors.
  const bool asked_of_lines = !shape_.line_cuts.empty() && FormatOf(observed_.dtype) == &Binary32() &&
                              acc.rounding == Rounding::kNearestEven;
  return trial.fit / std::sqrt(together) >= (asked_of_lines ? 2 : 1) * options_.worst_fit &&
         (residuals.fits ||
          FitsOrders(residuals.ratio, residuals.largest, asked_of_lines ? 0 : residuals.lean,
                     std::min(residuals.count, static_cast<size_t>(sums))));
}

double Classifier::Weigh(std::span<const int64_t> elements, std::span<const double> stored) {
  double best = -kInf;
  std::vector<Trial*> rivals;
  // The same sums of operands as they are, by what else there is to a model.
  std::map<std::string, const Hypothesis*> plain;
  const auto sums = [](const PrecisionModel& model) {
    return PrecisionModel{.in = {}, .acc = model.acc, .cuts = model.cuts}.Name();
  };
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (model.in.empty() && model.prod.none()) plain.emplace(sums(model), trial.hypothesis.get());
  }
  for (Trial& trial : trials_) {
    if (!trial.survived) continue;
    if (TooMuch()) return best;
    trial.log_likelihood = -kInf;
    // Without such a model, its own errors: four elements tell most of them apart, and cost less than all.
    const auto like = plain.find(sums(trial.hypothesis->model()));
    const Hypothesis& errs = like != plain.end() ? *like->second : *trial.hypothesis;
    spent_ += WorkOfOrders(errs, kMayFit);
    if (!MayFit(*trial.hypothesis, errs, elements, stored)) continue;
    trial.match = ExactMatch(*trial.hypothesis, elements, stored);
    spent_ += WorkOfOrders(*trial.hypothesis, trial.match.matches > 0 ? elements.size() : kMayFit);
    trial.log_likelihood = trial.match.log_likelihood;
    trial.residuals = trial.match.residuals;
    best = std::max(best, trial.log_likelihood);
    if (trial.match.matches == 0 && !trial.hypothesis->order_free()) rivals.push_back(&trial);
  }
  const FitCheck fit = best > -kInf ? FitCheck::kSkip : FitCheck::kMeasure;
  for (Trial* trial : rivals) {
    if (TooMuch()) return best;
    trial->probe = ProbeLaw(*trial->hypothesis, elements, stored);
    spent_ += WorkOfOrders(*trial->hypothesis, ProbeCount(elements.size()));
  }
  std::ranges::stable_sort(rivals, [](const Trial* a, const Trial* b) { return a->probe > b->probe; });
  const double keep = std::log(options_.keep_factor);
  for (Trial* trial : rivals) {
    if (trial->probe < best - keep - kProbeRoom) continue;
    if (TooMuch()) return best;
    spent_ += WorkOfOrders(*trial->hypothesis, elements.size());
    trial->Take(Likelihood(*trial->hypothesis, elements, stored, trial->match, fit));
    // What does not fit is no measure for what does: a truncating sum may come nearer to bits that lean the other way.
    if (Fits(*trial)) best = std::max(best, trial->log_likelihood);
  }
  return best;
}

}  // namespace ulpscope
