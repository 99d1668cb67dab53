// Likelihood: which of the models that are left give these bits, or err as these results do.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/classifier.h"
#include "harness/judge/sample.h"
#include "harness/num/float_format.h"
#include "harness/num/tensor_data.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

/// Products of the elements that orders which gave the whole sample are held against.
constexpr int64_t kMatchTerms = int64_t{1} << 18;

}  // namespace

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
  constexpr size_t kMostTrials = 6;
  if (likeliest.size() > kMostTrials) likeliest.resize(kMostTrials);
  double most = 0;
  for (const Trial* trial : likeliest) {
    if (trial->match.matches > 0) return 1;
    most = std::max(most, ReproducedBy(*trial->hypothesis));
  }
  return most;
}

double Classifier::ReproducedBy(const Hypothesis& hypothesis) const {
  constexpr double kFew = 2;  // units in the last place
  std::vector<int64_t> elements;
  std::vector<double> stored;
  const bool zeros = std::ranges::all_of(sample_stored_, [](double value) { return value == 0; });
  for (size_t i = 0; i < sample_.size(); ++i) {
    // What is masked away is zero in any arithmetic.
    if (sample_stored_[i] == 0 && !zeros) continue;
    const Interval range = hypothesis.Enclose(sample_[i]);
    if (!(range.hi - range.lo <= kFew * Ulp(sample_stored_[i], *FormatOf(observed_.dtype)))) continue;
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
  const int64_t budget =
      std::clamp<int64_t>(65536 / std::max<int64_t>(1, shape_.terms), 16, options_.likelihood_elements);
  const size_t count = std::min(elements_.size(), static_cast<size_t>(budget));
  for (const int64_t at : Spread(std::ssize(elements_), static_cast<int64_t>(count))) {
    const auto pick = static_cast<size_t>(at);
    sample_.push_back(elements_[pick]);
    sample_stored_.push_back(stored_[pick]);
  }
}

PrecisionModel Classifier::OnEachElement(PrecisionModel model) const {
  model.acc.clear();
  if (!model.cuts.empty()) model.mid.clear();
  std::erase_if(model.cuts, [&](const auto& cut) { return Contains(shape_.line_cuts, cut.first); });
  return model;
}

double Classifier::SampledOfLine() const {
  if (shape_.reduction_length < 2 || sample_.empty()) return 1;
  const auto sampled = static_cast<double>(sample_.size());
  return std::max(1.0, sampled / static_cast<double>(std::max<int64_t>(1, shape_.sums)));
}

std::set<PrecisionModel> Classifier::Likely() {
  std::set<PrecisionModel> likely;
  if (sample_.empty()) ChooseSample();
  const bool none = std::ranges::none_of(trials_, [](const Trial& trial) { return trial.survived; });
  if (none) return likely;
  const bool order_free =
      std::ranges::all_of(trials_, [](const Trial& trial) { return trial.hypothesis->order_free(); });
  double best = Weigh(sample_, sample_stored_);
  if (order_free && best == -kInf) {
    // Nobody's functions are ours. Without a sum the enclosures are a few units wide: to lie inside is to fit.
    for (Trial& trial : trials_) {
      if (!trial.survived) continue;
      trial.log_likelihood = best = 0;
      trial.residuals.fits = true;
    }
  }
  const auto fits = [&](const Trial& trial) {
    return trial.survived && std::isfinite(trial.log_likelihood) && Fits(trial);
  };
  // Which way the last bits of steps inside an op lean is the form's doing as much as the rounding's.
  const auto leans = [](const Trial& trial) {
    const auto acc = ParseAcc(trial.hypothesis->model().acc);
    return trial.match.matches == 0 && acc && acc->wide() && acc->rounding != Rounding::kNearestEven;
  };
  const bool forms = shape_.has_steps && std::ranges::any_of(trials_, [&](const Trial& trial) {
                       return fits(trial) && !leans(trial);
                     });
  if (forms) {
    best = -kInf;
    for (const Trial& trial : trials_) {
      if (fits(trial) && !leans(trial)) best = std::max(best, trial.log_likelihood);
    }
  }
  for (const Trial& trial : trials_) {
    if (forms && leans(trial)) continue;
    if (fits(trial) && trial.log_likelihood >= best - std::log(options_.keep_factor))
      likely.insert(trial.hypothesis->model());
  }
  // Of one line of a norm all elements share what its sums are off by: they are one observation of how sums are computed.
  if (const double together = SampledOfLine(); together > 1) {
    std::set<PrecisionModel> elementwise;
    for (const PrecisionModel& model : likely) elementwise.insert(OnEachElement(model));
    for (const Trial& trial : trials_) {
      if (forms && leans(trial)) continue;
      if (fits(trial) && trial.log_likelihood >= best - together * std::log(options_.keep_factor) &&
          elementwise.contains(OnEachElement(trial.hypothesis->model())))
        likely.insert(trial.hypothesis->model());
    }
  }
  const auto roundless = [](PrecisionModel model) {
    if (model.prod == "float32") model.prod = "exact";
    return model;
  };
  // How a sum's errors lie tells its format; whether its products were rounded to that format the bits of one order tell.
  const bool matched = std::ranges::any_of(trials_, [&](const Trial& trial) {
    return trial.match.matches > 0 && likely.contains(trial.hypothesis->model());
  });
  std::set<PrecisionModel> alike;
  for (const PrecisionModel& model : likely) alike.insert(roundless(model));
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (!matched && trial.survived && alike.contains(roundless(model))) likely.insert(model);
  }
  // Of steps inside an op another form gives other bits as rightly.
  if (!shape_.has_steps)
    MatchMore(&likely);
  else
    MatchSteps(&likely);
  return likely;
}

void Classifier::MatchSteps(std::set<PrecisionModel>* likely) {
  constexpr int64_t kMostWork = int64_t{1} << 26;
  if (likely->size() < 2 || FormatOf(observed_.dtype)->precision > Binary16().precision) return;
  std::vector<const Trial*> rivals;
  int64_t work = 0;
  for (const Trial& trial : trials_) {
    if (!trial.survived || !likely->contains(trial.hypothesis->model())) continue;
    rivals.push_back(&trial);
    work += WorkOfOrders(*trial.hypothesis, sample_.size());
  }
  if (work > kMostWork) return;
  std::map<PrecisionModel, double> shares;
  double best = 0;
  for (const Trial* trial : rivals) {
    double& share = shares[trial->hypothesis->model()];
    share = std::max(share, ReproducedBy(*trial->hypothesis));
    best = std::max(best, share);
  }
  if (best < kNearlyEvery) return;
  const auto n = static_cast<double>(sample_.size());
  const double least = best - 3 * std::sqrt(n * best * (1 - best) + 1) / n;
  const double together = SampledOfLine();
  PrecisionModel nearest;
  for (const auto& [model, share] : shares) {
    if (share == best) nearest = OnEachElement(model);
  }
  const auto shares_lines = [&](const PrecisionModel& model) {
    return together > 1 && OnEachElement(model) == nearest;
  };
  const double least_of_lines = best - together * (best - least);
  for (const auto& [model, share] : shares) {
    if (share < (shares_lines(model) ? least_of_lines : least)) likely->erase(model);
  }
  if (likely->size() < 2 || elements_.size() <= sample_.size() || rivals[0]->hypothesis->orders().empty())
    return;
  // Steps that round nearly the same part in a few elements of many.
  const int64_t each = std::max<int64_t>(1, work / static_cast<int64_t>(rivals.size() * sample_.size()));
  const auto most = std::min(elements_.size(),
                             static_cast<size_t>(kMostWork / each / static_cast<int64_t>(likely->size())));
  if (most <= sample_.size()) return;
  std::map<PrecisionModel, size_t> misses;
  for (const Trial* trial : rivals) {
    const PrecisionModel& model = trial->hypothesis->model();
    if (!likely->contains(model)) continue;
    const size_t missed = FewestMisses(*trial->hypothesis, std::span(elements_).first(most),
                                       std::span(stored_).first(most), most);
    const auto [entry, is_new] = misses.try_emplace(model, missed);
    if (!is_new) entry->second = std::min(entry->second, missed);
  }
  size_t fewest = most;
  for (const auto& [model, missed] : misses) fewest = std::min(fewest, missed);
  const double chance = 3 * std::sqrt(static_cast<double>(fewest) + 1);
  for (const auto& [model, missed] : misses) {
    if (static_cast<double>(missed) >
        static_cast<double>(fewest) + (shares_lines(model) ? together : 1) * chance)
      likely->erase(model);
  }
}

bool Classifier::Fits(const Trial& trial) const {
  const Residuals& residuals = trial.residuals;
  if (!shape_.has_steps || shape_.reduction_length < 2)
    return residuals.fits && !residuals.too_near && trial.fit >= options_.worst_fit;
  const int64_t sums = std::max<int64_t>(1, std::min(shape_.sums, result_.elements));
  // A few sums may all be nearer than they mostly are; and the other steps inside need not be rounded one by one, as orders have it:
  // what is too near for float32 was computed by fewer of them.
  constexpr int64_t kFewest = 16;
  const auto acc = ParseAcc(trial.hypothesis->model().acc);
  const bool narrow = acc && acc->bits() <= Binary16().precision;
  if (sums >= kFewest && narrow && residuals.too_near) return false;
  const auto together = static_cast<double>(result_.elements) / static_cast<double>(sums);
  // Which way lines lean is asked of lines (DoubtLines): where an eps outweighs all squares, every line has the one inverse deviation,
  // and its rounding, and so many elements are not so many errors.
  const bool asked_of_lines = !shape_.line_cuts.empty() && FormatOf(observed_.dtype) == &Binary32() && acc &&
                              acc->rounding == Rounding::kNearestEven;
  return trial.fit / std::sqrt(together) >= (asked_of_lines ? 2 : 1) * options_.worst_fit &&
         (residuals.fits ||
          FitsOrders(residuals.ratio, residuals.largest, asked_of_lines ? 0 : residuals.lean,
                     std::min(residuals.count, static_cast<size_t>(sums))));
}

std::pair<std::vector<int64_t>, std::vector<double>> Classifier::AffordableElements() const {
  const auto affordable = static_cast<size_t>(kMatchTerms / std::max<int64_t>(1, shape_.terms));
  std::vector<int64_t> elements = sample_;
  std::vector<double> stored = sample_stored_;
  const std::set<int64_t> sampled(sample_.begin(), sample_.end());
  for (size_t i = 0; i < elements_.size() && elements.size() < affordable; ++i) {
    if (sampled.contains(elements_[i])) continue;
    elements.push_back(elements_[i]);
    stored.push_back(stored_[i]);
  }
  return {std::move(elements), std::move(stored)};
}

std::pair<std::vector<int64_t>, std::vector<double>> Classifier::OpenOf(
    const Trial& trial, const std::vector<int64_t>& elements, const std::vector<double>& stored) const {
  if (!trial.few_open || trial.passed < elements_.size()) return {elements, stored};
  const std::unordered_set<int64_t> open(trial.open.begin(), trial.open.end());
  std::pair<std::vector<int64_t>, std::vector<double>> left;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!open.contains(elements[i])) continue;
    left.first.push_back(elements[i]);
    left.second.push_back(stored[i]);
  }
  return left;
}

void Classifier::MatchMore(std::set<PrecisionModel>* likely) {
  std::vector<Trial*> rivals;
  bool matched = false;
  for (Trial& trial : trials_) {
    if (!trial.survived || !likely->contains(trial.hypothesis->model()) || trial.hypothesis->order_free())
      continue;
    rivals.push_back(&trial);
    matched = matched || trial.match.matches > 0;
  }
  if (!matched || likely->size() < 2) return;
  const auto [elements, stored] = AffordableElements();
  if (elements.size() <= sample_.size()) return;
  // As many misses as make none of them in another order as unlikely as what likelihood sets aside.
  const auto most = static_cast<size_t>(std::ceil(SampledOfLine() * std::log(options_.keep_factor)));
  // Once one gives them all, it is enough of the others to know that they are near. What is asked for gives them all mostly.
  std::stable_partition(rivals.begin(), rivals.end(), [&](const Trial* trial) {
    return trial->match.matches > 0 && IsAsAsked(trial->hypothesis->model());
  });
  bool whole = false;
  int order = rivals.front()->match.matching_order;  // what gave one sum's bits is near to those of others
  std::set<PrecisionModel> near;
  const bool is_narrow = FormatOf(observed_.dtype)->precision <= Binary16().precision;
  for (Trial* trial : rivals) {
    if (is_narrow && trial->passed < elements_.size()) {
      Try(trial, trial->passed, elements_.size());
      trial->hypothesis->Forget();
      if (!trial->survived) continue;
    }
    const auto [open, stored_of] = OpenOf(*trial, elements, stored);
    const size_t misses =
        FewestMisses(*trial->hypothesis, open, stored_of, most, whole ? most - 1 : 0, order);
    if (trial->match.matching_order >= 0) order = trial->match.matching_order;
    whole = whole || misses == 0;
    if (misses < most) near.insert(trial->hypothesis->model());
  }
  if (!whole) return;
  for (const Trial* trial : rivals) {
    if (!near.contains(trial->hypothesis->model())) likely->erase(trial->hypothesis->model());
  }
}

double Classifier::BitsTooNear(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                               std::span<const double> nearest, size_t off, std::string* why) const {
  size_t fewest = elements.size();
  for (const int order : hypothesis.Orders()) {
    fewest = std::min(fewest, DifferentValues(nearest, hypothesis.Stored(order, elements)));
    // Of random numbers orders that are not tried leave half as many at least.
    if (2 * off >= fewest) return 0;
  }
  *why = fmt::format(
      "{} of {} results are not the nearest to the exact value; in every order tried of this model {} or "
      "more are not",
      off, elements.size(), fewest);
  // Chernoff's bound of a binomial tail.
  const auto n = static_cast<double>(elements.size());
  const double seen = static_cast<double>(off) / n, due = static_cast<double>(fewest) / n / 2;
  const double apart =
      (seen == 0 ? 0 : seen * std::log2(seen / due)) + (1 - seen) * std::log2((1 - seen) / (1 - due));
  return apart * std::min(n, static_cast<double>(std::max<int64_t>(1, shape_.sums)));
}

void Classifier::ExcludeTooNear(std::set<PrecisionModel>* likely) {
  constexpr double kNoAccident = 48;  // 2^-48, as of missing bits
  constexpr size_t kFewest = 96;      // fewer results cannot show it
  if (only_ != nullptr || shape_.has_steps || shape_.reduction_length < 1) return;
  std::map<PrecisionModel, const Hypothesis*> narrow;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (trial.survived && model.in.empty() && model.prod == "exact" && model.cuts.empty() &&
        !trial.hypothesis->order_free() && !IsAsAsked(model))
      narrow.emplace(model, trial.hypothesis.get());
  }
  const auto [elements, stored] = narrow.empty() ? decltype(AffordableElements()){} : AffordableElements();
  if (elements.size() < kFewest) return;
  std::vector<double> nearest;
  for (const Reference& reference : oracle_.References(value_, elements))
    nearest.push_back(RoundTo(reference.value(), *FormatOf(observed_.dtype)));
  const size_t off = DifferentValues(nearest, stored);
  for (const auto& [model, hypothesis] : narrow) {
    std::string why;
    const bool excluded = BitsTooNear(*hypothesis, elements, nearest, off, &why) >= kNoAccident;
    hypothesis->Forget();
    if (!excluded) continue;
    // Narrower operands and products leave no more of them.
    for (Trial& trial : trials_) {
      PrecisionModel plain = trial.hypothesis->model();
      plain.in.clear();
      plain.prod = "exact";
      if (!trial.survived || plain != model) continue;
      likely->erase(trial.hypothesis->model());
      Fall(&trial, {.how = Fallen::How::kNear, .at = 0, .range = {}, .why = why});
    }
  }
}

void Classifier::KeepOrderWitnesses(const std::set<PrecisionModel>& likely) {
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    const auto acc = ParseAcc(model.acc);
    if (trial.survived && acc && acc->block > 0 && !likely.contains(model))
      KeepOrderWitness(*trial.hypothesis, sample_, sample_stored_);
  }
}

void Classifier::KeepOrderWitness(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                                  std::span<const double> stored) {
  constexpr size_t kFew = 4;
  if (result_.excluded.size() >= kMostExclusions) return;
  if (!OrderWitness(hypothesis, elements.first(std::min(kFew, elements.size())), stored, 0) &&
      elements.size() > kFew)
    OrderWitness(hypothesis, elements, stored, kFew);
}

bool Classifier::OrderWitness(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                              std::span<const double> stored, size_t from) {
  std::vector<std::vector<double>> runs;
  for (size_t order = 0; order < hypothesis.orders().size(); ++order)
    runs.push_back(hypothesis.Simulate(static_cast<int>(order), elements));
  for (size_t i = from; i < elements.size(); ++i) {
    double low = kInf, high = -kInf;
    bool given = false;
    for (const auto& run : runs) {
      const double value = hypothesis.Store(run[i]);
      given = given || value == stored[i];
      low = std::min(low, value);
      high = std::max(high, value);
    }
    if (given) continue;
    result_.excluded.push_back(
        {.model = hypothesis.model(),
         .element = Coordinates(elements[i], observed_.shape),
         .observed = stored[i],
         .reference = stored[i],
         .low = low,
         .high = high,
         .why = fmt::format("observed {}; none of {} summation orders of this unit gives it, they give {} "
                            "to {} (likelihood, not proof)",
                            FormatNumber(stored[i]), runs.size(), FormatNumber(low), FormatNumber(high))});
    return true;
  }
  return false;
}

double Classifier::Weigh(std::span<const int64_t> elements, std::span<const double> stored) {
  double best = -kInf;
  std::vector<Trial*> rivals;
  // The same sums of operands as they are, by what else there is to a model.
  std::map<std::string, const Hypothesis*> plain;
  const auto sums = [](const PrecisionModel& model) {
    PrecisionModel key{.in = {}, .prod = "exact", .acc = model.acc, .mid = "", .out = "", .cuts = model.cuts};
    return key.Name();
  };
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (model.in.empty() && model.prod == "exact") plain.emplace(sums(model), trial.hypothesis.get());
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
