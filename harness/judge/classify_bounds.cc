// Hard evidence: which models cannot have given these bits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "harness/base/text.h"
#include "harness/judge/chunks.h"
#include "harness/judge/classifier.h"
#include "harness/judge/flushing.h"
#include "harness/judge/rule_numbers.h"
#include "harness/model/exclusion.h"
#include "harness/num/float_format.h"
#include "harness/num/tensor_data.h"

namespace ulpscope {

void Classifier::TryFlushing() {
  const std::set<PrecisionModel> keep = Survivors();
  TryAll(oracle_.FlushingBank(value_, observed_.dtype));
  std::erase_if(trials_, [&](const Trial& trial) {
    const PrecisionModel& model = trial.hypothesis->model();
    const PrecisionModel plain = WithoutFlushing(model);
    return trial.survived && plain != model && keep.contains(plain);
  });
}

bool Classifier::AnyVanished() const {
  const FloatFormat& format = *FormatOf(observed_.dtype);
  for (size_t i = 0; i < stored_.size(); ++i) {
    if (stored_[i] == 0 && RoundTo(references_[i].hi, format) != 0) return true;
  }
  return false;
}

void Classifier::Fall(Trial* trial, Fallen fallen) {
  trial->survived = false;
  trial->passed = fallen.at;
  trial->fallen = std::move(fallen);
}

Exclusion Classifier::ExclusionOf(const Trial& trial) const {
  using How = Fallen::How;
  const auto& [how, at, range, possible, why] = trial.fallen;
  Exclusion exclusion{.model = trial.hypothesis->model(),
                      .element = Coordinates(elements_[at], observed_.shape),
                      .observed = stored_[at],
                      .reference = references_[at].hi,
                      .low = range.lo,
                      .high = range.hi,
                      .why = why};
  const std::string observed = FormatNumber(exclusion.observed), low = FormatNumber(range.lo);
  if (how == How::kStore) {
    exclusion.by = ExcludedBy::kStore;
    exclusion.why =
        fmt::format("{} is not a value that this model's output can hold (nearest: {})", observed, low);
  } else if (how == How::kOrders) {
    exclusion.by = ExcludedBy::kOrders;
    exclusion.why = fmt::format(
        "observed {}; the {} results that this model's summation orders give here lie between {} and {} "
        "without it (exact "
        "value {})",
        observed, possible, low, FormatNumber(range.hi), FormatNumber(exclusion.reference));
  } else if (how == How::kBounds) {
    exclusion.by = ExcludedBy::kBounds;
    exclusion.why = BoundsSentence(exclusion, "this model");
  }
  return exclusion;
}

void Classifier::TryAll(std::vector<std::unique_ptr<Hypothesis>> hypotheses) {
  trials_.reserve(trials_.size() + hypotheses.size());
  for (auto& hypothesis : hypotheses) {
    trials_.emplace_back();
    trials_.back().hypothesis = std::move(hypothesis);
    Try(&trials_.back(), 0, FirstElements());
    trials_.back().hypothesis->Forget();
    spent_ += WorkOf(std::min(trials_.back().passed + 1, FirstElements()));
    if (TooMuch() || WillBeTooMuch(hypotheses.size())) return;
  }
}

size_t Classifier::FirstElements() const {
  if (HardOnly()) return elements_.size();
  const int64_t affordable = kFirstTerms / std::max<int64_t>(1, shape_.terms);
  return std::min(elements_.size(), static_cast<size_t>(std::clamp<int64_t>(affordable, 16, kFirstElements)));
}

void Classifier::TryRest() {
  const int64_t rest =
      static_cast<int64_t>(elements_.size() - FirstElements()) * std::max<int64_t>(1, shape_.terms);
  int64_t affordable = rest == 0 ? 0 : kRestTerms / rest;
  for (Trial& trial : trials_) {
    if (!trial.survived || trial.passed == elements_.size()) continue;
    if (!now_.likely.contains(trial.hypothesis->model()) && affordable-- <= 0) continue;
    Try(&trial, trial.passed, elements_.size());
    trial.hypothesis->Forget();
  }
  std::set<PrecisionModel> left;
  for (const Trial& trial : trials_) {
    if (trial.survived && now_.likely.contains(trial.hypothesis->model()))
      left.insert(trial.hypothesis->model());
  }
  now_.likely = left;
}

size_t Classifier::Unstorable(const Hypothesis& hypothesis) {
  // What rounds operands and products is not asked: the store comes after them.
  PrecisionModel stores = hypothesis.model();
  stores.in.clear();
  stores.prod = {};
  const auto [known, is_new] = unstorable_.emplace(stores.Name(), elements_.size());
  if (!is_new) return known->second;
  if (distinct_.empty()) {
    std::unordered_set<double> seen;
    for (size_t i = 0; i < stored_.size(); ++i) {
      if (seen.insert(stored_[i]).second) distinct_.push_back(i);
    }
  }
  for (const size_t i : distinct_) {
    if (SameValue(hypothesis.Store(stored_[i]), stored_[i])) continue;
    known->second = i;
    break;
  }
  return known->second;
}

void Classifier::Try(Trial* trial, size_t first, size_t last) {
  const Hypothesis& hypothesis = *trial->hypothesis;
  // Representability first: it needs no enclosure.
  if (const size_t i = first == 0 ? Unstorable(hypothesis) : elements_.size(); i < elements_.size()) {
    const double again = hypothesis.Store(stored_[i]);
    return Fall(trial, {.how = Fallen::How::kStore, .at = i, .range = {.lo = again, .hi = again}, .why = {}});
  }
  const size_t most_open = elements_.size() / kOpenShare;
  for (size_t i = first; i < last; ++i) {
    if (!all_points_ && hypothesis.SurelyHolds(elements_[i], stored_[i])) {
      trial->NoteOpen(elements_[i], most_open);
      continue;
    }
    const Interval range = hypothesis.Enclose(elements_[i]);
    if (range.lo != range.hi) all_points_ = false;
    if (range.lo != range.hi || range.special) trial->NoteOpen(elements_[i], most_open);
    if (range.Holds(stored_[i])) {
      if (range.lo == range.hi || !std::isfinite(stored_[i]) || range.special) continue;
      const std::vector<double> possible = hypothesis.Possible(elements_[i]);
      if (possible.empty() || std::binary_search(possible.begin(), possible.end(), stored_[i])) continue;
      return Fall(trial, {.how = Fallen::How::kOrders,
                          .at = i,
                          .range = {.lo = possible.front(), .hi = possible.back()},
                          .possible = possible.size(),
                          .why = {}});
    }
    return Fall(trial, {.how = Fallen::How::kBounds, .at = i, .range = range, .why = {}});
  }
  trial->passed = last;
  if (last < elements_.size()) return;
  const auto chunks = ChunksShown(hypothesis, shape_.reduction_length, elements_, stored_);
  if (!chunks) return;
  if (chunks->apart.empty())
    Fall(trial, {.how = Fallen::How::kChunk,
                 .at = chunks->index,
                 .range = {.lo = stored_[chunks->index], .hi = stored_[chunks->index]},
                 .why = WhyOneChunk()});
  else if (HardOnly() && chunks->shows)
    result_.apart[hypothesis.model().Name()] = chunks->apart;
}

}  // namespace ulpscope
