// Results nearer to the exact values than narrow sums come, and the elements that no order of a unit gives.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/base/text.h"
#include "harness/judge/classifier.h"
#include "harness/judge/rule_numbers.h"
#include "harness/num/float_format.h"

namespace ulpscope {

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

void Classifier::ExcludeTooNear() {
  std::map<PrecisionModel, const Hypothesis*> narrow;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (trial.survived && model.in.empty() && model.prod.none() && model.cuts.empty() &&
        !trial.hypothesis->order_free() && !IsAsAsked(model))
      narrow.emplace(model, trial.hypothesis.get());
  }
  const auto [elements, stored] = narrow.empty() ? decltype(AffordableElements()){} : AffordableElements();
  if (elements.size() < kFewestNearest) return;
  std::vector<double> nearest;
  for (const Reference& reference : oracle_.References(value_, elements))
    nearest.push_back(RoundTo(reference.value(), *FormatOf(observed_.dtype)));
  const size_t off = DifferentValues(nearest, stored);
  for (const auto& [model, hypothesis] : narrow) {
    std::string why;
    const bool excluded =
        BitsTooNear(*hypothesis, elements, nearest, off, &why) >= static_cast<double>(kNoAccident);
    hypothesis->Forget();
    if (!excluded) continue;
    // Narrower operands and products leave no more of them.
    for (Trial& trial : trials_) {
      PrecisionModel plain = trial.hypothesis->model();
      plain.in.clear();
      plain.prod = {};
      if (!trial.survived || plain != model) continue;
      now_.likely.erase(trial.hypothesis->model());
      Fall(&trial, {.how = Fallen::How::kNear, .at = 0, .range = {}, .why = why});
    }
  }
}

void Classifier::KeepOrderWitnesses() {
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (trial.survived && model.acc.block > 0 && !now_.likely.contains(model))
      KeepOrderWitness(*trial.hypothesis, sample_, sample_stored_);
  }
}

void Classifier::KeepOrderWitness(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                                  std::span<const double> stored) {
  if (result_.excluded.size() >= kMostExclusions) return;
  if (!OrderWitness(hypothesis, elements.first(std::min(kFirstWitnesses, elements.size())), stored, 0) &&
      elements.size() > kFirstWitnesses)
    OrderWitness(hypothesis, elements, stored, kFirstWitnesses);
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
    const Reference exact = oracle_.References(value_, elements.subspan(i, 1)).front();
    result_.excluded.push_back(
        {.model = hypothesis.model(),
         .element = Coordinates(elements[i], observed_.shape),
         .observed = stored[i],
         .reference = exact.hi,
         .low = low,
         .high = high,
         .why = fmt::format("observed {}; none of {} summation orders of this unit gives it, they give {} "
                            "to {} (likelihood, not proof)",
                            FormatNumber(stored[i]), runs.size(), FormatNumber(low), FormatNumber(high))});
    return true;
  }
  return false;
}

}  // namespace ulpscope
