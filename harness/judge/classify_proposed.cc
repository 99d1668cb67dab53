// Models that no bank lists: which of them are kept, and the baseline that errors are measured against.
#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/judge/classifier.h"
#include "harness/judge/rule_numbers.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

std::set<PrecisionModel> Classifier::KeepMatching(std::vector<std::unique_ptr<Hypothesis>> hypotheses) {
  return KeepMatching(std::move(hypotheses), sample_, sample_stored_, 1);
}

std::set<PrecisionModel> Classifier::KeepMatching(std::vector<std::unique_ptr<Hypothesis>> hypotheses,
                                                  std::span<const int64_t> elements,
                                                  std::span<const double> stored, size_t misses) {
  std::set<PrecisionModel> found;
  for (auto& hypothesis : hypotheses) {
    Trial trial;
    trial.match = ExactMatch(*hypothesis, sample_, sample_stored_);
    if (trial.match.matches == 0 && FewestMisses(*hypothesis, elements, stored, misses) >= misses) continue;
    trial.hypothesis = std::move(hypothesis);
    Try(&trial, 0, elements_.size());
    trial.hypothesis->Forget();
    if (!trial.survived) continue;
    trial.log_likelihood = trial.match.log_likelihood;
    trial.residuals = trial.match.residuals;
    found.insert(trial.hypothesis->model());
    trials_.push_back(std::move(trial));
  }
  return found;
}

bool Classifier::IsOrderKnown() const {
  const Trial* plain = PlainFloat32();
  return plain != nullptr && ExactMatch(*plain->hypothesis, sample_, sample_stored_).matches > 0;
}

std::set<PrecisionModel> Classifier::KeepHolding(std::span<const Proposal> proposals) {
  const size_t before = trials_.size();
  TryAll(oracle_.Propose(value_, observed_.dtype, proposals));
  std::set<PrecisionModel> held;
  for (size_t i = before; i < trials_.size(); ++i) {
    if (trials_[i].survived) held.insert(trials_[i].hypothesis->model());
  }
  return held;
}

bool Classifier::IsRoundedToBits(const PrecisionModel& model) const {
  return now_.bits > 1 && model.mid == ToBits(now_.bits);
}

std::set<PrecisionModel> Classifier::Proposed(std::span<const Proposal> proposals) {
  if (proposals.empty()) return {};
  const size_t before = trials_.size();
  TryAll(oracle_.Propose(value_, observed_.dtype, proposals));
  const std::set<PrecisionModel> all = Likely();
  std::set<PrecisionModel> likely = LikelyOfProposed(before, all);
  DropMissedByOrders(before, &likely);
  const auto rounded = [this](const PrecisionModel& model) { return IsRoundedToBits(model); };
  const bool unmatched = std::ranges::any_of(trials_, [&](const Trial& trial) {
    return trial.match.matches == 0 && rounded(trial.hypothesis->model()) &&
           likely.contains(trial.hypothesis->model());
  });
  const bool open = std::any_of(
      trials_.begin() + static_cast<std::ptrdiff_t>(before), trials_.end(), [&](const Trial& trial) {
        const AccSpec& acc = trial.hypothesis->model().acc;
        return all.contains(trial.hypothesis->model()) && acc.bits() < Binary32().precision &&
               trial.match.matches == 0 && acc.bits() == now_.bits;
      });
  // Results that all have so few bits may come of sums in as many, of parts that are joined in as many, or of one rounding: no order
  // tells.
  if (open || (unmatched && MayBeJoined())) std::erase_if(likely, rounded);
  // Nor do errors that are as much a narrow sum's as one rounding's.
  if (std::ranges::any_of(likely, [](const PrecisionModel& model) { return model.mid.to_bits(); })) {
    for (size_t i = before; i < trials_.size(); ++i) {
      const PrecisionModel& model = trials_[i].hypothesis->model();
      if (all.contains(model) && model.acc.bits() < Binary32().precision) likely.insert(model);
    }
  }
  return likely;
}

std::set<PrecisionModel> Classifier::LikelyOfProposed(size_t before,
                                                      const std::set<PrecisionModel>& all) const {
  // Operands in fewer bits that no order shows err no more than the worst order tried does, but for chance. However their products are
  // rounded: what is near enough of one is of the other.
  std::set<PrecisionModel> near;
  for (size_t i = before; i < trials_.size(); ++i) {
    const PrecisionModel& model = trials_[i].hypothesis->model();
    const Residuals& residuals = trials_[i].residuals;
    if (trials_[i].match.matches > 0 || model.in.empty() ||
        residuals.ratio <= 1 + 3 / std::sqrt(static_cast<double>(std::max<size_t>(1, residuals.count))))
      near.insert(WithExactProducts(model));
  }
  // What reads an operand in fewer bits moves all results of its row or column together: so many are one observation of it.
  double best = -kInf;
  for (const Trial& trial : trials_) {
    if (all.contains(trial.hypothesis->model())) best = std::max(best, trial.log_likelihood);
  }
  const double rows = static_cast<double>(ElementCount(observed_.shape)) /
                      static_cast<double>(observed_.shape.empty() ? 1 : observed_.shape.back());
  const double together = std::max(1.0, static_cast<double>(sample_.size()) / std::max(1.0, rows));
  const auto as_likely = [&](const Trial& trial) {
    return trial.survived && !trial.hypothesis->model().in.empty() && std::isfinite(trial.log_likelihood) &&
           Fits(trial) && trial.log_likelihood >= best - together * std::log(options_.keep_factor);
  };
  std::set<PrecisionModel> likely;
  for (size_t i = before; i < trials_.size(); ++i) {
    const PrecisionModel& model = trials_[i].hypothesis->model();
    const AccSpec& acc = model.acc;
    // Errors tell no bits beside float32's own, nor how they were rounded: those of one order do.
    const bool by_errors = acc.bits() >= Binary32().precision && !acc.has_guard_bits();
    if ((all.contains(model) || as_likely(trials_[i])) && (by_errors || trials_[i].match.matches > 0) &&
        near.contains(WithExactProducts(model)))
      likely.insert(model);
  }
  return likely;
}

void Classifier::DropMissedByOrders(size_t before, std::set<PrecisionModel>* likely) const {
  // Rounded to so many bits, sums in other orders are mostly the same: results that the nearest order misses more of than orders miss
  // of each other's were rounded on their way too.
  for (size_t i = before; i < trials_.size(); ++i) {
    const Trial& trial = trials_[i];
    const PrecisionModel& model = trial.hypothesis->model();
    if (trial.match.matches > 0 || !likely->contains(model) || now_.bits == 0 || !IsRoundedToBits(model))
      continue;
    const size_t apart = OrdersApart(*trial.hypothesis, sample_);
    const double most = static_cast<double>(apart) + 3 * std::sqrt(static_cast<double>(apart) + 1);
    if (static_cast<double>(FewestMisses(*trial.hypothesis, sample_, sample_stored_, sample_.size())) > most)
      likely->erase(model);
  }
}

bool Classifier::MayBeJoined() {
  if (shape_.has_steps || shape_.reduction_length < kLeastJoined) return false;
  const size_t before = trials_.size();
  const Proposal joined{.in = {}, .acc = JoinedIn(FormatOfBits(now_.bits))};
  TryAll(oracle_.Propose(value_, observed_.dtype, std::span(&joined, 1)));
  const std::set<PrecisionModel> likely = Likely();
  const bool may_be = std::any_of(
      trials_.begin() + static_cast<std::ptrdiff_t>(before), trials_.end(), [&](const Trial& trial) {
        return trial.match.matches == 0 && likely.contains(trial.hypothesis->model());
      });
  trials_.erase(trials_.begin() + static_cast<std::ptrdiff_t>(before), trials_.end());
  return may_be;
}

const Trial* Classifier::Natural(const std::set<PrecisionModel>& likely) const {
  const Trial* best = nullptr;
  for (const Trial& trial : trials_) {
    if (!likely.contains(trial.hypothesis->model()) || !trial.survived) continue;
    if (best == nullptr || trial.log_likelihood > best->log_likelihood) best = &trial;
  }
  if (best != nullptr) return best;
  size_t fewest = 0;
  int candidates = 0;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    const bool plain = IsConforming(model, Binary32(), kNaturalSums);
    // What rounds steps on the way besides is one of many.
    const bool bare = model.mid.none() && model.cuts.empty();
    if (!plain || (!bare && ++candidates > 16)) continue;
    size_t outside = 0;
    for (size_t i = 0; i < sample_.size(); ++i)
      outside += trial.hypothesis->Enclose(sample_[i]).Holds(sample_stored_[i]) ? 0 : 1;
    const bool asked = model.acc == SumsIn(observed_.dtype == DType::kFloat64 ? Binary64() : Binary32());
    if (best != nullptr && (outside > fewest || (outside == fewest && !asked))) continue;
    best = &trial;
    fewest = outside;
  }
  return best;
}

void Classifier::ChooseBaseline() { now_.baseline = Natural(now_.likely); }

const Trial* Classifier::PlainFloat32() const {
  const Trial* plain = nullptr;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (model.acc != SumsIn(Binary32()) || !model.cuts.empty() || !IsAsAsked(model)) continue;
    if (trial.survived) return &trial;
    if (plain == nullptr) plain = &trial;
  }
  return plain;
}

}  // namespace ulpscope
