// Doubt: likely models that nothing but the size of their errors explains.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/judge/classifier.h"
#include "harness/judge/rule_numbers.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

void Classifier::NoteErrorsAlone() {
  ErrorsAlone alone;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (!trial.survived || !now_.likely.contains(model)) continue;
    if (trial.match.matches > 0) return;
    // Sums whose parts are joined in a wider format err less than what they stand beside.
    alone.large = alone.large || (model.acc != JoinedWider() && trial.residuals.ratio >= kAsLarge);
    alone.split = alone.split && std::ranges::any_of(model.in, IsSplit);
  }
  now_.by_errors = alone;
}

void Classifier::DropLikely() {
  now_.likely.clear();
  now_.by_errors.reset();
}

void Classifier::SpareSumsToNearest() {
  for (const PrecisionModel& model : now_.likely) {
    const AccSpec& acc = model.acc;
    if (acc.wide() && acc.block == 0 && acc.rounding == Rounding::kNearestEven) return now_.by_errors.reset();
  }
  const Trial* baseline = Natural({});
  if (baseline == nullptr || baseline->hypothesis->order_free()) return now_.by_errors.reset();
  now_.by_errors->baseline = baseline;
}

void Classifier::DoubtNearest() {
  const Trial& baseline = *now_.by_errors->baseline;
  if (baseline.survived || !IsFaithful(*baseline.hypothesis)) return;
  result_.says.push_back(
      {RemarkKind::kNeighbours,
       "every result is one of the two neighbours of the exact value, but not always the nearest"});
  DropLikely();
}

void Classifier::TryOtherCauses() {
  std::vector<Proposal> proposals;
  Explain(*now_.by_errors->baseline->hypothesis, &proposals);
  if (!result_.says.empty()) return DropLikely();
  auto proposed = Proposed(proposals);
  if (proposed.empty()) return;
  now_.likely = std::move(proposed);
  now_.by_errors.reset();
}

int Classifier::MostBitsOfSums() const {
  int bits = 0;
  for (const PrecisionModel& model : now_.likely) bits = std::max(bits, model.acc.bits());
  return bits;
}

void Classifier::DoubtTruncation() {
  now_.by_errors.reset();
  const bool cut = std::ranges::all_of(now_.likely, [](const PrecisionModel& model) {
    const AccSpec& acc = model.acc;
    return acc.block > 0 || (acc.binary() && acc.rounding == Rounding::kTowardZero);
  });
  if (!cut) return;
  // What errs like a float32 sum is not accused of cutting, however much better the law takes that.
  bool plain = false;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (!trial.survived || !IsAsAsked(model) || !std::isfinite(trial.log_likelihood) || !Fits(trial))
      continue;
    now_.likely.insert(model);
    plain = true;
  }
  if (plain) return;
  const bool units =
      std::ranges::any_of(now_.likely, [](const PrecisionModel& model) { return model.acc.block > 0; });
  if (Lean()) {
    now_.lean = fmt::format("errors biased as those of {}, and no tested order of such sums gives these bits",
                            units ? "truncating float32 block sums" : "truncating float32 sums");
    result_.says.push_back({RemarkKind::kErrors, now_.lean});
  }
  now_.likely.clear();
}

void Classifier::DoubtNarrowSums() {
  const int bits = MostBitsOfSums();
  const bool large = now_.by_errors->large;
  DropLikely();
  // Of an op that does more than sum, errors of that size may be those of what it reads. And a few results may ask for them alone.
  if (shape_.has_steps || !large) return;
  const std::string sums = bits == Bfloat16().precision   ? "bfloat16 sums (8 significant bits)"
                           : bits == Binary16().precision ? "float16 sums (11 significant bits)"
                                                          : fmt::format("sums in {} significant bits", bits);
  result_.says.push_back(
      {RemarkKind::kErrors,
       fmt::format("errors as large as those of {}, and no order tried of such sums gives these bits",
                   sums)});
}

void Classifier::DoubtTooNear() {
  std::vector<const Trial*> sums;
  for (const Trial& trial : trials_) {
    if (!trial.survived || !now_.likely.contains(trial.hypothesis->model())) continue;
    if (trial.match.matches > 0 || trial.hypothesis->order_free()) return;
    sums.push_back(&trial);
  }
  const FloatFormat& format = *FormatOf(observed_.dtype);
  const auto exact = oracle_.References(value_, sample_);
  const auto far_off = [&](size_t i, double stored) {
    return !(DistanceFrom(exact[i], stored) < Ulp(exact[i].hi, format));
  };
  for (size_t i = 0; i < stored_.size(); ++i) {
    if (!(DistanceFrom(references_[i], stored_[i]) < Ulp(references_[i].hi, format))) return;
  }
  // As many further off as make none of them in an order of its own as unlikely as what likelihood sets aside.
  const size_t enough = MostMisses();
  for (const Trial* trial : sums) {
    for (size_t order = 0; order < trial->hypothesis->orders().size(); ++order) {
      const auto run = trial->hypothesis->Stored(static_cast<int>(order), sample_);
      size_t off = 0;
      for (size_t i = 0; i < run.size(); ++i) off += far_off(i, run[i]) ? 1 : 0;
      if (off < enough) return;
    }
  }
  now_.too_near =
      "every result is one of the two neighbours of the exact value, nearer than any order tried of a "
      "float32 sum comes, but not always the nearest";
  result_.says.push_back({RemarkKind::kNeighbours, now_.too_near});
  now_.likely.clear();
}

bool Classifier::IsFaithful(const Hypothesis& model) const {
  const FloatFormat& format = *FormatOf(observed_.dtype);
  if (stored_.size() < kFaithfulLeast || format.precision > 11) return false;
  bool nearest = true;
  const auto exact = model.Simulate(-1, elements_);
  for (size_t i = 0; i < elements_.size(); ++i) {
    const double error = std::fabs(stored_[i] - exact[i]);
    if (!(error < Ulp(exact[i], format))) return false;
    nearest = nearest && model.Store(exact[i]) == stored_[i];
  }
  return !nearest;
}

bool Classifier::Lean() const {
  double towards_zero = 0, count = 0;
  for (size_t i = 0; i < stored_.size(); ++i) {
    const double error = (stored_[i] - references_[i].hi) - references_[i].lo;
    if (!std::isfinite(error) || error == 0) continue;
    towards_zero += std::signbit(error) != std::signbit(references_[i].hi) ? 1 : 0;
    ++count;
  }
  return std::fabs(2 * towards_zero - count) > kBiased * std::sqrt(count);
}

}  // namespace ulpscope
