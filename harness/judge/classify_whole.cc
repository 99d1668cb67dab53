// Every element: gross errors, special values, and where they are.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/base/text.h"
#include "harness/judge/classifier.h"
#include "harness/judge/rule_numbers.h"
#include "harness/judge/sample.h"
#include "harness/judge/where.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

bool Classifier::IsOdd(const Hypothesis& model, double reach, int64_t element, double stored,
                       const Interval& sum) const {
  if (!std::isfinite(stored) || !std::isfinite(sum.lo) || !std::isfinite(sum.hi) || sum.special)
    return IsOddSpecial(model, element, stored, sum);
  if (FormatOf(observed_.dtype)->precision > 51) return !model.Enclose(element).Holds(stored);
  if (reach >= 1) return stored < model.Store(sum.lo) || stored > model.Store(sum.hi);
  // One step outwards: halves of an interval of two neighbours would round back to one of them.
  const double centre = sum.lo + (sum.hi - sum.lo) / 2, radius = (sum.hi - sum.lo) / 2 * reach;
  return stored < model.Store(std::nextafter(centre - radius, -kInf)) ||
         stored > model.Store(std::nextafter(centre + radius, kInf));
}

std::vector<int64_t> Classifier::OddOf(const Hypothesis& model, double reach,
                                       const std::vector<int64_t>& elements) const {
  std::vector<int64_t> odd;
  for (const int64_t element : elements) {
    if (IsOdd(model, reach, element, observed_.At(element), model.EncloseUnstored(element)))
      odd.push_back(element);
  }
  return odd;
}

void Classifier::LookEverywhere() {
  const int64_t most = options_.most_terms / std::max<int64_t>(1, shape_.terms);
  now_.looked = ElementsToCheck(observed_.shape, most);
  const Hypothesis& model = *now_.baseline->hypothesis;
  now_.odd = OddOf(model, now_.likely.empty() ? 1 : Reach(model), now_.looked);
}

void Classifier::ExplainOdd() {
  // Another model may explain what the first one does not. Sums that are cut, none of whose orders gives the bits, only have room for it.
  const auto is_guess = [](const Trial& trial) {
    const AccSpec& acc = trial.hypothesis->model().acc;
    return trial.match.matches == 0 && (acc.block > 0 || acc.rounding == Rounding::kTowardZero);
  };
  std::vector<const Trial*> rivals;
  for (const Trial& trial : trials_) {
    if (trial.survived && now_.likely.contains(trial.hypothesis->model()) &&
        (is_guess(*now_.baseline) || !is_guess(trial)))
      rivals.push_back(&trial);
  }
  std::ranges::stable_sort(
      rivals, [](const Trial* a, const Trial* b) { return a->log_likelihood > b->log_likelihood; });
  std::set<PrecisionModel> explain;
  int wholes = 0;
  for (const Trial* rival : rivals) {
    const double reach = Reach(*rival->hypothesis);
    if (!OddOf(*rival->hypothesis, reach, now_.odd).empty()) continue;
    // The first that explains these is asked for all of them.
    if (explain.empty() && wholes < 3) {
      ++wholes;
      const auto others = OddOf(*rival->hypothesis, reach, now_.looked);
      rival->hypothesis->Forget();
      if (!others.empty()) {
        now_.odd.insert(now_.odd.end(), others.begin(), others.end());
        continue;
      }
    } else if (explain.empty()) {
      break;
    }
    explain.insert(rival->hypothesis->model());
  }
  if (!explain.empty()) {
    now_.likely = explain;
    now_.odd.clear();
  }
}

void Classifier::ReportOdd() {
  const Hypothesis& model = *now_.baseline->hypothesis;
  std::vector<int64_t>& odd = now_.odd;
  model.Forget();
  std::ranges::sort(odd);
  odd.erase(std::unique(odd.begin(), odd.end()), odd.end());
  if (odd.empty()) return;
  if (!now_.likely.empty() || odd.size() < now_.looked.size()) SayWhere(model, now_.looked, odd);
  now_.likely.clear();
  const auto zeros = static_cast<size_t>(
      std::ranges::count_if(odd, [&](const int64_t element) { return observed_.At(element) == 0; }));
  if (zeros == odd.size() && odd.size() > 1)
    result_.says.push_back({RemarkKind::kLost, fmt::format("{} results are zero", zeros)});
}

bool Classifier::IsOddSpecial(const Hypothesis& model, int64_t element, double stored, Interval sum) const {
  if (!std::isfinite(stored) && !model.Enclose(element).Holds(stored)) return true;
  if (std::isfinite(stored) && std::isnan(sum.lo)) return true;
  if (std::isfinite(sum.lo) && std::isfinite(sum.hi)) return false;
  const Reference reference = oracle_.References(value_, std::span(&element, 1)).front();
  if (reference.kind != ReferenceKind::kDomain) return false;
  // A NaN stays one. An infinity may become one, where the other terms can overflow to its opposite on the way.
  if (std::isnan(reference.hi) || std::isfinite(stored)) return !std::isnan(stored);
  return stored != reference.hi && !sum.special;
}

double Classifier::Reach(const Hypothesis& model) const {
  // Steps inside an op are computed in forms and by functions that no order stands for.
  if (model.order_free() || !model.smooth() || shape_.has_steps) return 1;
  double largest = 0;
  std::vector<Interval> ranges;
  for (const int64_t element : sample_) ranges.push_back(model.EncloseUnstored(element));
  for (size_t order = 0; order < model.orders().size(); ++order) {
    const auto run = model.Simulate(static_cast<int>(order), sample_);
    for (size_t i = 0; i < run.size(); ++i) {
      const double radius = (ranges[i].hi - ranges[i].lo) / 2;
      const double error = std::fabs(run[i] - (ranges[i].lo + radius));
      if (radius > 0 && std::isfinite(radius) && std::isfinite(error))
        largest = std::max(largest, error / radius);
    }
  }
  if (largest == 0) return 1;
  return std::min(1.0, largest * (4 + 6 / std::sqrt(static_cast<double>(sample_.size()))));
}

bool Classifier::AreOthersGiven(const Hypothesis& natural, const std::vector<int64_t>& odd) const {
  const std::set<int64_t> out(odd.begin(), odd.end());
  std::vector<int64_t> others;
  std::vector<double> stored;
  for (size_t i = 0; i < sample_.size(); ++i) {
    if (out.contains(sample_[i])) continue;
    others.push_back(sample_[i]);
    stored.push_back(sample_stored_[i]);
  }
  return others.empty() || FewestMisses(natural, others, stored, 1) == 0;
}

std::string Classifier::FurthestOf(const std::vector<int64_t>& elements) const {
  // Each costs an exact value: the first ones will do where there are many.
  const std::span<const int64_t> some = std::span(elements).first(std::min(elements.size(), kMostFurthest));
  const auto exact = oracle_.References(value_, some);
  size_t furthest = 0;
  double largest = -1;
  for (size_t i = 0; i < some.size(); ++i) {
    const double distance =
        std::fabs(UlpError(observed_.At(some[i]), exact[i].value(), *FormatOf(observed_.dtype)));
    if (!(distance > largest)) continue;
    largest = distance;
    furthest = i;
  }
  return Join(Coordinates(some[furthest], observed_.shape), ", ");
}

void Classifier::SayWhere(const Hypothesis& natural, const std::vector<int64_t>& looked,
                          const std::vector<int64_t>& odd) {
  // Results that all lack bits are wrong everywhere, and stand out where they happen to lose more.
  const auto place = now_.bits > 0 ? std::nullopt : PlaceOf(observed_.shape, looked, odd);
  if (!place) {
    const PrecisionModel& model = natural.model();
    // What is rounded on the way, or leaves room for a library's function, is no measure of the exact value.
    const bool plain_sum = !natural.order_free() && !shape_.has_steps && model.in.empty() &&
                           model.cuts.empty() && model.mid.none();
    if (plain_sum) {
      result_.says.push_back(
          {RemarkKind::kPlaces,
           fmt::format("{} of {} elements are further from the exact value than a sum in {} comes, e.g. [{}]",
                       odd.size(), looked.size(), AccWord(model.acc), FurthestOf(odd))});
      return;
    }
    // The nearest model may round on the way, or sum in less, and then excludes what is right: the plainest one is asked for itself.
    const Trial* plain = IsAsAsked(model) ? nullptr : PlainFloat32();
    const std::vector<int64_t> off = plain == nullptr ? odd : OddOf(*plain->hypothesis, 1, looked);
    if (off.empty())
      result_.says.push_back(
          {RemarkKind::kRejected,
           fmt::format("the nearest model does not allow {} of {} elements", odd.size(), looked.size())});
    else
      result_.says.push_back(
          {RemarkKind::kRejected,
           fmt::format("{} of {} elements lie outside what the plainest computation allows, e.g. [{}]",
                       off.size(), looked.size(), FurthestOf(off))});
    return;
  }
  const size_t inside = place->inside.size();
  // Of a few that stand out the others may be off by less, where no order gives them.
  const bool only =
      inside >= kLeastOfPlace || natural.order_free() || shape_.has_steps || AreOthersGiven(natural, odd);
  result_.says.push_back(
      {RemarkKind::kPlaces,
       (only ? "wrong only in " : "wrong in ") + place->words +
           (odd.size() < inside ? fmt::format(" ({} of these {} elements)", odd.size(), inside) : "")});
  if (place->inside.size() < kLeastOfPlace || place->outside.size() < kLeastOfPlace) return;
  for (const auto* part : {&place->inside, &place->outside}) {
    std::vector<int64_t> elements;
    const auto most = static_cast<size_t>(options_.most_elements);
    const size_t step = std::max<size_t>(1, part->size() / most);
    for (size_t i = 0; i < part->size(); i += step) elements.push_back((*part)[i]);
    const Classification each = Classifier(oracle_, value_, observed_, options_, &elements).Run();
    result_.regions.push_back(
        {.where = part == &place->inside ? place->words : "elsewhere", .label = each.label});
  }
}

}  // namespace ulpscope
