// The outcome of a classification: its kind, its label, and what is reported beside them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_set>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/classifier.h"
#include "harness/judge/label.h"
#include "harness/judge/model_hash.h"
#include "harness/judge/rule_numbers.h"
#include "harness/model/conforming.h"
#include "harness/num/float_format.h"

namespace ulpscope {
void Classifier::ListModels() {
  now_.proved = Survivors();
  std::unordered_set<const PrecisionModel*, HashOfModel, SameModel> tried;
  for (const Trial& trial : trials_) tried.insert(&trial.hypothesis->model());
  result_.models_tried = static_cast<int64_t>(tried.size());
  result_.models_proved.assign(now_.proved.begin(), now_.proved.end());
  result_.models.assign(now_.likely.begin(), now_.likely.end());
}

void Classifier::SettleFit() {
  result_.fits = !now_.likely.empty() && now_.odd.empty() && result_.says.empty();
  if (!result_.fits) result_.models.clear();
}

void Classifier::NameNoModel() {
  result_.kind = ClassificationKind::kUnmodelled;
  SayWhatIsGone();
}

void Classifier::NameKind() {
  result_.rests_on_likelihood = now_.likely.size() < now_.proved.size() || result_.beyond > 0;
  const auto tried = static_cast<size_t>(result_.models_tried);
  const bool nothing_fell = now_.proved.size() == tried && tried > 1;
  result_.kind = nothing_fell && all_points_ ? ClassificationKind::kExactOnly
                 : now_.likely.size() == 1   ? ClassificationKind::kIdentified
                                             : ClassificationKind::kIndistinguishable;
}

void Classifier::MeasureReproduced() { result_.reproduced = Reproduced(); }

void Classifier::LabelValue() {
  ProjectFacets(shape_, &result_);
  SetLabel(shape_, observed_.dtype, options_.errors, &result_);
}

/// Out of a format's range goes what is out of another's: of infinities and NaNs alone no format can be told.
void Classifier::DoubtSpecials() {
  int64_t specials = 0;
  double most = 0;
  for (size_t i = 0; i < stored_.size(); ++i) {
    if (std::isfinite(stored_[i]) && stored_[i] != 0) return;
    if (!std::isfinite(stored_[i])) ++specials;
    if (std::isfinite(references_[i].hi)) most = std::max(most, std::fabs(references_[i].hi));
  }
  if (specials < kFewestSpecials || most == 0 || !std::isfinite(RoundTo(most, *FormatOf(observed_.dtype))))
    return;
  result_.says.push_back(
      {RemarkKind::kLost, fmt::format("no result is a number other than zero ({} of {} are infinite or NaN), "
                                      "where exact ones reach {:.3g}",
                                      specials, stored_.size(), most)});
  result_.models.clear();
}

/// Zero where every exact result is subnormal: any narrow format gives that, and so does what drops subnormals. Zero where it is not:
/// any format whose range ends above the operands.
void Classifier::DoubtZeros() {
  const FloatFormat& format = *FormatOf(observed_.dtype);
  const double least = std::ldexp(1.0, format.emin);
  double most = 0;
  for (size_t i = 0; i < stored_.size(); ++i) {
    if (stored_[i] != 0) return;
    most = std::max(most, std::fabs(references_[i].hi));
  }
  const auto drops = [&](const PrecisionModel& model) {
    return IsAsAsked(model) || model.acc.flushes() ||
           std::ranges::any_of(model.in, [](const auto& in) { return in.second.drops_operands(); });
  };
  if (most == 0 || !std::isfinite(most)) return;
  if (most >= least) {
    result_.fits = false;
    result_.kind = ClassificationKind::kUnmodelled;
    result_.models.clear();
    result_.says.push_back(
        {RemarkKind::kLost,
         fmt::format(
             "every result is zero where exact ones reach {:.3g}: no zero shows which format lost them",
             most)});
    return;
  }
  if (std::ranges::any_of(result_.models, drops)) return;
  result_.kind = ClassificationKind::kNotJudged;
  result_.fits = false;
  result_.models.clear();
  result_.models_proved.clear();
  result_.says = {
      {RemarkKind::kLost,
       fmt::format(
           "every result is zero where the exact ones are subnormal numbers, up to {:.3g}: no format shows",
           most)}};
}

/// What a format of a smaller range does: small numbers are zero, large ones infinite, where the exact ones are far inside the
/// range of the result.
void Classifier::SayWhatIsGone() {
  const FloatFormat& format = *FormatOf(observed_.dtype);
  struct Gone {
    int64_t count = 0;
    size_t first = 0;
  };
  std::array<Gone, 2> gone{};
  const double small = std::ldexp(1.0, format.emin + kFarInsideRange);
  for (size_t i = 0; i < stored_.size(); ++i) {
    const double exact = std::fabs(references_[i].hi);
    if (references_[i].kind == ReferenceKind::kUndecided || !std::isfinite(exact)) continue;
    const bool zero = stored_[i] == 0 && exact >= small;
    const bool infinite =
        std::isinf(stored_[i]) && std::isfinite(RoundTo(std::ldexp(exact, kFarInsideRange), format));
    if (!zero && !infinite) continue;
    Gone& one = gone[infinite ? 1 : 0];
    if (one.count++ == 0) one.first = i;
  }
  for (const auto& [one, word] : {std::pair{gone[0], "zero"}, {gone[1], "infinite"}}) {
    if (one.count == 0) continue;
    result_.says.push_back(
        {RemarkKind::kLost,
         fmt::format("{} of {} results are {} where the exact ones are not (at [{}]: {:.3g})", one.count,
                     stored_.size(), word, Join(Coordinates(elements_[one.first], observed_.shape), ", "),
                     references_[one.first].hi)});
  }
}

void Classifier::DoubtForms() {
  const auto asked = [&](const PrecisionModel& model) { return IsAsAsked(model); };
  if (std::ranges::any_of(result_.models, asked)) return;
  const bool open = std::ranges::any_of(result_.models_proved, asked);
  const bool sums = std::ranges::all_of(
      result_.models, [](const PrecisionModel& model) { return model.acc.bits() < Binary32().precision; });
  if (!open && !sums) return;
  result_.says.push_back(
      {RemarkKind::kRejected,
       fmt::format("no known decomposition of this op gives these bits, and the requested precision is {}",
                   open ? "not excluded" : "excluded")});
  result_.models.clear();
  result_.fits = result_.rests_on_likelihood = false;
  result_.kind = ClassificationKind::kUnmodelled;
}

int Classifier::Differences(const PrecisionModel& a, const PrecisionModel& b) {
  return (a.in != b.in) + (a.prod != b.prod) + (a.acc != b.acc) + (a.mid != b.mid || a.cuts != b.cuts) +
         (a.out != b.out);
}

void Classifier::KeepExclusions() {
  const std::set<PrecisionModel>& proved = now_.proved;
  const auto is_near = [&](const PrecisionModel& rival) {
    return std::ranges::any_of(
        result_.models, [&](const PrecisionModel& survivor) { return Differences(rival, survivor) <= 1; });
  };
  std::map<const PrecisionModel*, const Trial*, OrderOfModels> fallen;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    // What a contract asks for is shown beside what is left, however far from it.
    if (trial.survived || proved.contains(model) || (!proved.empty() && !is_near(model) && !IsAsAsked(model)))
      continue;
    const Trial*& kept = fallen[&model];
    if (kept == nullptr || trial.passed > kept->passed) kept = &trial;
  }
  std::vector<const Trial*> rivals;
  for (const auto& [model, trial] : fallen) rivals.push_back(trial);
  if (proved.empty())
    std::ranges::stable_sort(rivals, [](const Trial* a, const Trial* b) { return a->passed > b->passed; });
  std::stable_partition(rivals.begin(), rivals.end(),
                        [&](const Trial* trial) { return IsAsAsked(trial->hypothesis->model()); });
  if (rivals.size() > kMostExclusions) rivals.resize(kMostExclusions);
  for (const Trial* trial : rivals) result_.excluded.push_back(ExclusionOf(*trial));
}

}  // namespace ulpscope
