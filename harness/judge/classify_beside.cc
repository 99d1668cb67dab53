// Models beside the likely ones, which errors or orders do not tell from them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "harness/base/find.h"
#include "harness/judge/classifier.h"
#include "harness/judge/rule_numbers.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

bool Classifier::CanBeJoinedWider() const {
  return !shape_.has_steps && shape_.reduction_length >= kLeastJoined && only_ == nullptr;
}

void Classifier::TryJoinedWider() {
  std::vector<Proposal> proposals;
  double best = -kInf;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (!trial.survived || !now_.likely.contains(model)) continue;
    if (trial.match.matches > 0) return;
    best = std::max(best, trial.log_likelihood);
    if (model.acc == SumsIn(Binary32()) && model.cuts.empty())
      proposals.push_back({.in = model.in, .acc = JoinedWider(), .mid = model.mid, .prod = model.prod});
  }
  for (auto& hypothesis : oracle_.Propose(value_, observed_.dtype, proposals)) {
    const auto has_this = [&](const Trial& trial) {
      return trial.hypothesis->model() == hypothesis->model();
    };
    if (const auto before = std::ranges::find_if(trials_, has_this); before != trials_.end()) {
      // A contract named it.
      if (!before->survived) continue;
      before->log_likelihood = std::max(before->log_likelihood, best);
      now_.likely.insert(before->hypothesis->model());
      continue;
    }
    Trial trial;
    trial.hypothesis = std::move(hypothesis);
    Try(&trial, 0, elements_.size());
    if (trial.survived) {
      trial.match = ExactMatch(*trial.hypothesis, sample_, sample_stored_);
      trial.Take(Likelihood(*trial.hypothesis, sample_, sample_stored_, trial.match, FitCheck::kMeasure));
      // Its errors lie between none and those of float32: what these explain without an order it explains too. Nor does it come
      // alone: two parts are joined alike in either format.
      trial.log_likelihood = std::max(trial.log_likelihood, best);
      now_.likely.insert(trial.hypothesis->model());
    }
    trial.hypothesis->Forget();
    trials_.push_back(std::move(trial));
  }
  // What an order of theirs gives, float32 parts that were joined in another one may give as well, however products were rounded.
  std::set<PrecisionModel> alike;
  for (const PrecisionModel& model : now_.likely) {
    if (model.acc == JoinedWider()) alike.insert(WithExactProducts(model));
  }
  for (const Trial& trial : trials_) {
    PrecisionModel joined = WithExactProducts(trial.hypothesis->model());
    if (!trial.survived || joined.acc != SumsIn(Binary32()) ||
        (!std::isfinite(trial.log_likelihood) && shape_.reduction_length > kFewTerms))
      continue;
    joined.acc = JoinedWider();
    if (alike.contains(joined)) now_.likely.insert(trial.hypothesis->model());
  }
}

void Classifier::TryTiesAway() {
  std::vector<Proposal> proposals;
  std::map<PrecisionModel, const Trial*> likes;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (!trial.survived || trial.match.matches > 0 || !now_.likely.contains(model) || !model.cuts.empty() ||
        trial.hypothesis->order_free() || proposals.size() >= kMostTiesAway)
      continue;
    PrecisionModel away = model;
    for (auto& [operand, in] : away.in) {
      if (in.format != nullptr && in.pieces == 1 && in.to_nearest() && !in.drops_operands())
        in.rounding = Rounding::kNearestAway;
    }
    if (away.in == model.in) continue;
    proposals.push_back({.in = away.in, .acc = away.acc, .mid = away.mid, .prod = away.prod});
    likes.emplace(std::move(away), &trial);
  }
  std::vector<Trial> found;
  for (auto& hypothesis : oracle_.Propose(value_, observed_.dtype, proposals)) {
    const auto like = likes.find(hypothesis->model());
    // Without a number that lies half-way the two are one.
    if (like == likes.end() ||
        hypothesis->Simulate(-1, sample_) == like->second->hypothesis->Simulate(-1, sample_))
      continue;
    Trial trial;
    trial.hypothesis = std::move(hypothesis);
    Try(&trial, 0, elements_.size());
    if (!trial.survived) continue;
    trial.Take(Likelihood(*trial.hypothesis, sample_, sample_stored_, trial.match, FitCheck::kMeasure));
    trial.hypothesis->Forget();
    if (!Fits(trial) || trial.log_likelihood < like->second->log_likelihood - std::log(options_.keep_factor))
      continue;
    now_.likely.insert(trial.hypothesis->model());
    found.push_back(std::move(trial));
  }
  std::ranges::move(found, std::back_inserter(trials_));
}

std::vector<Proposal> Classifier::ReadingsInFewerBits() const {
  std::vector<Proposal> proposals;
  for (int bits = kFewestOfOperand; bits < Binary32().precision; ++bits) {
    for (const Rounding mode : {Rounding::kNearestEven, Rounding::kTowardZero}) {
      Proposal all{.in = {}};
      for (const std::string& operand : shape_.operands) {
        if (operand.starts_with("scalar.")) continue;
        all.in[operand] = {.format = &FormatOfBits(bits), .rounding = mode};
        proposals.push_back({.in = {{operand, all.in[operand]}}});
      }
      if (all.in.size() > 1) proposals.push_back(std::move(all));
    }
    if (shape_.has_products && bits >= kFewestOfProduct)
      proposals.push_back({.in = {}, .prod = ToBits(bits)});
  }
  return proposals;
}

void Classifier::JoinAsFewBits(std::set<PrecisionModel>* found) {
  // What reads an operand in fewer bits may multiply in float32 too.
  std::vector<Proposal> proposals;
  for (const PrecisionModel& model : *found) {
    if (shape_.has_products && !model.in.empty())
      proposals.push_back(
          {.in = model.in, .acc = model.acc, .mid = model.mid, .prod = ToNearest(Binary32())});
  }
  found->merge(Proposed(proposals));
  // By errors alone an operand in so many bits is no less likely than products in as many, whichever way it was rounded.
  int fewest = Binary32().precision;
  for (const PrecisionModel& model : *found) {
    if (model.prod.to_bits()) fewest = std::min(fewest, model.prod.bits());
  }
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    const bool as_few = !model.in.empty() && std::ranges::all_of(model.in, [&](const auto& in) {
      return in.second.to_bits() && in.second.bits() >= fewest;
    });
    if (trial.survived && as_few && model.prod.none()) found->insert(model);
  }
}

void Classifier::TryBitsByErrors() {
  bool splits = true, cuts = true, products = true;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (!trial.survived || !now_.likely.contains(model)) continue;
    if (trial.match.matches > 0 || trial.hypothesis->order_free()) return;
    splits = splits && std::ranges::any_of(model.in, IsSplit);
    cuts = cuts && model.acc.binary() && model.acc.rounding == Rounding::kTowardZero;
    // By errors alone, products in so many bits are no likelier than operands are.
    products = products && model.in.empty() && model.prod.to_bits();
  }
  result_.models.assign(now_.likely.begin(), now_.likely.end());
  // A few results may err by three times as much as mostly.
  if (!splits && !cuts && !products && sample_.size() >= kFewResults && Beyond().first == 0) return;
  const auto best_of = [&](const std::set<PrecisionModel>& models) {
    double best = -kInf;
    for (const Trial& trial : trials_) {
      if (trial.survived && models.contains(trial.hypothesis->model()))
        best = std::max(best, trial.log_likelihood);
    }
    return best;
  };
  const double before = best_of(now_.likely);
  std::set<PrecisionModel> found = Proposed(ReadingsInFewerBits());
  JoinAsFewBits(&found);
  // Far likelier, it is the explanation; else one beside the others, however unlikely some of these are.
  const double keep = std::log(options_.keep_factor);
  if (best_of(found) > before + keep)
    now_.likely = std::move(found);
  else
    now_.likely.merge(found);
  if (CanBeJoinedWider()) TryJoinedWider();
}

std::vector<Proposal> Classifier::SumsWithGuardBits(int most) {
  std::vector<Proposal> sums;
  for (int bits = Binary32().precision + 1; bits <= most; ++bits) {
    for (const Rounding mode : {Rounding::kNearestEven, Rounding::kTowardZero, Rounding::kNearestAway})
      sums.push_back({.in = {}, .acc = SumsIn(FormatOfBits(bits), mode)});
  }
  return sums;
}

void Classifier::TryFurtherOrders() {
  if (sample_.empty()) ChooseSample();
  auto [elements, stored] = AffordableElements();
  for (const int64_t odd : now_.odd) {
    if (Contains(elements, odd)) continue;
    elements.push_back(odd);
    stored.push_back(observed_.At(odd));
  }
  for (Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    const size_t orders = model.in.empty() ? trial.hypothesis->further_orders().size() : 0;
    for (size_t order = 0; order < orders && trial.further < 0; ++order) {
      const size_t first = std::min(kFirstOfFurther, elements.size());
      const auto differ = [&](std::span<const int64_t> some, std::span<const double> of_them) {
        return DifferentValues(trial.hypothesis->StoredFurther(order, some), of_them) > 0;
      };
      if (differ(std::span(elements).first(first), std::span(stored).first(first)) ||
          differ(elements, stored))
        continue;
      trial.further = static_cast<int>(order);
      result_.notes.push_back(
          {RemarkKind::kOrder, fmt::format("each of {} results is what {} gives {}", elements.size(),
                                           AccWord(model.acc), trial.hypothesis->further_orders()[order])});
    }
    if (trial.further < 0) continue;
    // What an order gives no bound excludes: those of a mean are of a sum that is divided.
    trial.survived = true;
    trial.match.matches = 1;
    trial.log_likelihood = 0;
    trial.residuals = {};
    trial.residuals.fits = true;
    now_.likely.insert(model);
  }
  if (now_.likely.empty()) return;
  result_.says.clear();
  now_.errors.clear();
  now_.odd.clear();
  now_.bits = 0;
}

void Classifier::TryGuardBits() {
  TryAll(oracle_.Propose(value_, observed_.dtype, SumsWithGuardBits(kMostGuardBitsProved)));
  now_.likely = Survivors();
}

}  // namespace ulpscope
