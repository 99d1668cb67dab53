// Likely models compared by the bits that their orders give, on more elements than a sample has.
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>
#include <utility>

#include "harness/judge/classifier.h"
#include "harness/judge/rule_numbers.h"
#include "harness/num/float_format.h"

namespace ulpscope {

void Classifier::MatchSteps() {
  if (ranking_.likely.size() < 2 || FormatOf(observed_.dtype)->precision > Binary16().precision) return;
  std::vector<const Trial*> rivals;
  int64_t work = 0;
  for (const Trial& trial : trials_) {
    if (!trial.survived || !ranking_.likely.contains(trial.hypothesis->model())) continue;
    rivals.push_back(&trial);
    work += WorkOfOrders(*trial.hypothesis, sample_.size());
  }
  if (work > kMatchStepsWork) return;
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
  std::pair<PrecisionModel, bool> nearest;
  for (const auto& [model, share] : shares) {
    if (share == best) nearest = OnEachElement(model);
  }
  const auto shares_lines = [&](const PrecisionModel& model) {
    return together > 1 && OnEachElement(model) == nearest;
  };
  const double least_of_lines = best - together * (best - least);
  for (const auto& [model, share] : shares) {
    if (share < (shares_lines(model) ? least_of_lines : least)) ranking_.likely.erase(model);
  }
  if (ranking_.likely.size() < 2 || elements_.size() <= sample_.size() ||
      rivals[0]->hypothesis->orders().empty())
    return;
  MatchStepsEverywhere(rivals, work, nearest);
}

void Classifier::MatchStepsEverywhere(const std::vector<const Trial*>& rivals, int64_t work,
                                      const std::pair<PrecisionModel, bool>& nearest) {
  const double together = SampledOfLine();
  const auto shares_lines = [&](const PrecisionModel& model) {
    return together > 1 && OnEachElement(model) == nearest;
  };
  // Steps that round nearly the same part in a few elements of many.
  const int64_t each = std::max<int64_t>(1, work / static_cast<int64_t>(rivals.size() * sample_.size()));
  const auto most =
      std::min(elements_.size(),
               static_cast<size_t>(kMatchStepsWork / each / static_cast<int64_t>(ranking_.likely.size())));
  if (most <= sample_.size()) return;
  std::map<PrecisionModel, size_t> misses;
  for (const Trial* trial : rivals) {
    const PrecisionModel& model = trial->hypothesis->model();
    if (!ranking_.likely.contains(model)) continue;
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
      ranking_.likely.erase(model);
  }
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

void Classifier::MatchMore() {
  std::vector<Trial*> rivals;
  bool matched = false;
  for (Trial& trial : trials_) {
    if (!trial.survived || !ranking_.likely.contains(trial.hypothesis->model()) ||
        trial.hypothesis->order_free())
      continue;
    rivals.push_back(&trial);
    matched = matched || trial.match.matches > 0;
  }
  if (!matched || ranking_.likely.size() < 2) return;
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
    if (!near.contains(trial->hypothesis->model())) ranking_.likely.erase(trial->hypothesis->model());
  }
}

}  // namespace ulpscope
