// The search where nothing of the bank fits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "harness/base/find.h"
#include "harness/judge/classifier.h"
#include "harness/judge/rule_numbers.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

std::string Times(double ratio) {
  return ratio < 10    ? fmt::format("{:.1f}", ratio)
         : ratio < 1e5 ? fmt::format("{:.0f}", ratio)
                       : fmt::format("{:.0e}", ratio);
}

}  // namespace

std::set<PrecisionModel> Classifier::Search(const Trial& natural) {
  const Hypothesis& model = *natural.hypothesis;
  std::vector<Proposal> proposals;
  if (now_.bits > 1 && !now_.to_odd) {
    // Rounded to so many after the sum, or all along.
    proposals.push_back({.in = {}, .mid = ToBits(now_.bits)});
    if (!model.order_free()) proposals.push_back({.in = {}, .acc = SumsIn(FormatOfBits(now_.bits))});
  }
  // Results of few bits are those of no float32 sums, however these are joined.
  if (now_.bits == 0 && shape_.reduction_length >= kLeastJoined && !shape_.has_steps &&
      now_.too_near.empty()) {
    for (const RoundSpec& prod : {RoundSpec{}, ToNearest(Binary32())})
      proposals.push_back({.in = {}, .acc = JoinedWider(), .prod = prod});
  }
  if (!model.order_free() && now_.odd.empty()) {
    const Yardstick yardstick(model, sample_, sample_stored_);
    const double ratio = yardstick.residuals().ratio;
    if (!yardstick.residuals().fits && std::isfinite(ratio))
      now_.errors = fmt::format("errors {} times those of {} in any order tried", Times(ratio),
                                AccWord(model.model().acc));
    // Guard bits: no float32 sum gives these results, and they err no more.
    const Trial* plain = PlainFloat32();
    if (plain != nullptr && !plain->survived && ratio <= kErrsNoMore && now_.bits == 0 && !shape_.has_steps) {
      std::ranges::move(SumsWithGuardBits(kMostGuardBits), std::back_inserter(proposals));
    }
    if (std::isfinite(ratio) && ratio > 1) {
      const int wide = model.model().acc.bits(), lost = static_cast<int>(std::lround(std::log2(ratio)));
      for (int p = wide - lost - 2; p <= wide - lost + 2; ++p) {
        if (p < 4 || p >= std::min(wide, 52)) continue;
        proposals.push_back({.in = {}, .acc = SumsIn(FormatOfBits(p))});
        proposals.push_back({.in = {}, .mid = ToBits(p)});
        if (shape_.has_products) proposals.push_back({.in = {}, .prod = ToBits(p)});
      }
    }
  }
  Explain(model, &proposals);
  const std::set<PrecisionModel> likely = Proposed(proposals);
  if (!likely.empty() && now_.odd.empty()) {
    // What was said of bits is now said by a model.
    result_.says.clear();
    now_.bits = 0;
    return likely;
  }
  if (!now_.errors.empty()) result_.says.push_back({RemarkKind::kErrors, now_.errors});
  return {};
}

void Classifier::SearchBeyond() { now_.likely = Search(*now_.baseline); }

void Classifier::Explain(const Hypothesis& model, std::vector<Proposal>* proposals) {
  if (!result_.regions.empty()) return;
  std::vector<int64_t> elements;
  std::vector<double> stored;
  const size_t count = std::min(kSearchElements, sample_.size());
  for (size_t i = 0; i < count; ++i) {
    const size_t pick = i * sample_.size() / count;
    if (!std::isfinite(sample_stored_[pick])) continue;
    elements.push_back(sample_[pick]);
    stored.push_back(sample_stored_[pick]);
  }
  if (elements.size() < 2) return;
  const Yardstick yardstick(model, elements, stored);
  bool near = true;
  for (size_t i = 0; i < elements.size(); ++i)
    near = near && yardstick.Deviation(i, yardstick.centre(i)) <= kNearby;
  if (near) return;
  ulpscope::Search found =
      oracle_.Explain(value_, elements, [&](size_t i, double sum) { return yardstick.Deviation(i, sum); });
  for (Proposal& proposal : found.proposals) {
    proposals->push_back(proposal);
    // What is read rounded may be multiplied in float32 or with the sum, in one step.
    if (!shape_.has_products || proposal.in.empty() || !proposal.prod.none()) continue;
    proposal.prod = ToNearest(Binary32());
    proposals->push_back(std::move(proposal));
  }
  for (Remark& remark : found.says) {
    if (!Contains(result_.says, remark)) result_.says.push_back(std::move(remark));
  }
  if (!found.says.empty()) return;
  // A factor that all results share.
  double products = 0, squares = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    products += stored[i] * yardstick.centre(i);
    squares += yardstick.centre(i) * yardstick.centre(i);
  }
  const double factor = squares > 0 ? products / squares : 1;
  bool scaled = std::isfinite(factor) && std::fabs(factor - 1) > 1e-6, zero = true;
  for (size_t i = 0; i < elements.size(); ++i) {
    scaled = scaled && yardstick.Deviation(i, factor * yardstick.centre(i)) <= kNearby;
    zero = zero && stored[i] == 0;
  }
  if (zero) return;
  if (!scaled) return;
  // What few results of one kind share, all of them have to: else it is how they were rounded.
  double plain = 0, with = 0;
  for (size_t i = 0; i < sample_.size() && scaled; ++i) {
    const double exact = oracle_.References(value_, std::span(&sample_[i], 1)).front().hi;
    const double half = Ulp(sample_stored_[i], *FormatOf(observed_.dtype)) / 2;
    scaled = !std::isfinite(sample_stored_[i]) || std::fabs(sample_stored_[i] - exact) > half || exact == 0 ||
             std::fabs(factor - 1) * std::fabs(exact) < half;
    if (!std::isfinite(sample_stored_[i])) continue;
    plain += std::pow(sample_stored_[i] - exact, 2);
    with += std::pow(sample_stored_[i] - factor * exact, 2);
  }
  scaled = scaled && with < kMuchLess * plain;
  Remark shown{RemarkKind::kFactor, fmt::format("{:.6g} times the exact value", factor)};
  if (scaled && !Contains(result_.says, shown)) result_.says.push_back(std::move(shown));
}

}  // namespace ulpscope
