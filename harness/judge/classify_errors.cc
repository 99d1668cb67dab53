// The size of errors, in those of float32 computations.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "harness/base/find.h"
#include "harness/judge/classifier.h"
#include "harness/judge/rule_numbers.h"
#include "harness/num/float_format.h"

namespace ulpscope {

std::pair<double, std::string> Classifier::Beyond() const {
  const Trial* plain = PlainFloat32();
  if (plain == nullptr || !IsKept(*plain) || plain->further >= 0 || sample_.size() < kFewestBeyond) return {};
  const bool every = WorkOfOrders(*plain->hypothesis, elements_.size()) <= kBeyondWork;
  const std::vector<int64_t>& elements = every ? elements_ : sample_;
  const auto centre = plain->hypothesis->Simulate(-1, elements);
  std::vector<std::vector<double>> runs;
  const auto names = plain->hypothesis->orders();
  for (const int order : plain->hypothesis->Orders()) {
    // Errors of functions that are drawn are larger than libraries' are.
    if (order < 0 || !names[static_cast<size_t>(order)].ends_with(kInexact))
      runs.push_back(plain->hypothesis->Stored(order, elements));
  }
  // A root mean square and the largest, of what both are numbers of.
  const auto measure = [&](const std::vector<double>& values, const std::vector<double>& unit) {
    std::pair<double, double> measured;
    for (size_t i = 0; i < values.size(); ++i) {
      const double error = std::fabs(values[i] - centre[i]) / unit[i];
      if (!std::isfinite(error)) continue;
      measured.first = std::hypot(measured.first, error);
      measured.second = std::max(measured.second, error);
    }
    return measured;
  };
  const auto beyond = [&](const std::vector<double>& unit) -> std::pair<double, std::string> {
    const auto [all, largest] = measure(every ? stored_ : sample_stored_, unit);
    double most_all = 0, most_largest = 0;
    for (const auto& run : runs) {
      const auto [own_all, own_largest] = measure(run, unit);
      most_all = std::max(most_all, own_all);
      most_largest = std::max(most_largest, own_largest);
    }
    if (!(most_all > 0)) return {};
    const double ratio = all / most_all, of_largest = largest / most_largest;
    if (ratio > kBeyondRms) return {ratio, "rms"};
    if (of_largest > kBeyondLargest) return {of_largest, "the largest"};
    return {};
  };
  std::vector<double> unit(elements.size(), 1);
  if (auto found = beyond(unit); found.first > 0 || shape_.reduction_length == 0) return found;
  // Of a line's elements the largest alone would count: each in what it errs by itself.
  for (size_t i = 0; i < elements.size(); ++i) {
    unit[i] = Ulp(centre[i], Binary32());
    for (const auto& run : runs) unit[i] = std::max(unit[i], std::fabs(run[i] - centre[i]));
  }
  auto found = beyond(unit);
  if (found.first > 0)
    found.second = found.second == "rms" ? "rms, of each element in its own" : "of one element, in its own";
  return found;
}

Classifier::Nearness Classifier::NearnessToFloat32(const Hypothesis& plain) const {
  const bool other_steps = shape_.has_steps && !shape_.is_mean;
  if (other_steps || shape_.reduction_length < 2) return {};
  if (WorkOfOrders(plain, elements_.size()) > kNearnessWork) return {};
  const FloatFormat& format = *FormatOf(observed_.dtype);
  // What an element may err by in any order is what its errors are measured in: these inputs hold numbers of many sizes.
  std::vector<double> unit;
  for (size_t i = 0; i < elements_.size(); ++i) {
    const Interval range = plain.Enclose(elements_[i]);
    unit.push_back(std::max(range.hi - range.lo, Ulp(references_[i].hi, format)));
  }
  plain.Forget();
  struct Errors {
    double squares = 0, largest = 0;
  };
  const auto errors_of = [&](const std::vector<double>& stored) {
    Errors errors;
    for (size_t i = 0; i < stored.size(); ++i) {
      const double one = DistanceFrom(references_[i], stored[i]) / unit[i];
      errors.squares += one * one;
      errors.largest = std::max(errors.largest, std::isnan(one) ? kInf : one);
    }
    return errors;
  };
  const Errors own = errors_of(stored_);
  Errors float32;
  std::vector<bool> of_sums(elements_.size());
  const auto orders = plain.Orders();
  for (const int order : orders) {
    const std::vector<double> results = plain.Stored(order, elements_);
    for (size_t i = 0; i < results.size(); ++i) {
      if (DistanceFrom(references_[i], results[i]) > kErrsOfSum * Ulp(references_[i].hi, format))
        of_sums[i] = true;
    }
    const Errors one = errors_of(results);
    float32.squares += one.squares / static_cast<double>(orders.size());
    float32.largest = std::max(float32.largest, one.largest);
  }
  const Errors plain_sums = float32;
  // A mean has other forms, which round where a sum of few bits is exact: as large as the errors of any of them.
  const size_t forms = shape_.is_mean ? plain.further_orders().size() : 0;
  for (size_t form = 0; form < forms; ++form) {
    const Errors one = errors_of(plain.StoredFurther(form, elements_));
    float32.squares = std::max(float32.squares, one.squares);
    float32.largest = std::max(float32.largest, one.largest);
  }
  const bool of_forms = float32.squares > plain_sums.squares || float32.largest > plain_sums.largest;
  if (!(float32.squares > 0) || !std::isfinite(float32.squares)) return {};
  const double ratio = std::max(std::sqrt(own.squares / float32.squares), own.largest / float32.largest);
  if (ratio > kNearFloat32) return {};
  return {.ratio = std::max(ratio, 0.01),
          .of_forms = of_forms,
          .of_sums = static_cast<size_t>(std::ranges::count(of_sums, true)) >=
                     std::max(kFewestOfSums, (elements_.size() + 1) / 2)};
}

void Classifier::MeasureBeyond() {
  std::tie(result_.beyond, result_.beyond_of) = Beyond();
  if (shape_.reduction_length > 0 || result_.beyond <= kNoFunction || result_.max_ulp <= kNoFunctionUnits)
    return;
  result_.says.push_back(
      {RemarkKind::kErrors,
       fmt::format(
           "errors {:.1f} times those of its steps in float32 ({}), and no step in fewer bits explains them",
           std::exchange(result_.beyond, 0), result_.beyond_of)});
  now_.likely.clear();
  result_.models.clear();
}

void Classifier::MeasureNearness() {
  const Trial* plain = PlainFloat32();
  const bool fallen = HardOnly() && plain != nullptr && !plain->survived;
  if (!fallen && !(Searches() && IsOffByErrorsAlone())) return;
  const Nearness found = NearnessToFloat32(*plain->hypothesis);
  result_.within = found.ratio;
  result_.within_forms = found.of_forms;
  result_.within_sums = found.of_sums;
}

/// Nothing explains the results, what the program asks for is not excluded, and nothing but their errors is said against it.
bool Classifier::IsOffByErrorsAlone() const {
  const Trial* plain = PlainFloat32();
  const bool errors_alone = std::ranges::all_of(result_.says, [&](const Remark& remark) {
    return remark.text == now_.errors || remark.text == now_.too_near || remark.text == now_.lean;
  });
  return result_.kind == ClassificationKind::kUnmodelled && only_ == nullptr && plain != nullptr &&
         plain->survived && errors_alone && now_.bits == 0 &&
         (now_.odd.empty() || (shape_.is_mean && OddAreNumbers()));
}

bool Classifier::OddAreNumbers() const {
  const std::set<int64_t> numbers(elements_.begin(), elements_.end());
  return std::ranges::all_of(now_.odd, [&](const int64_t element) {
    return numbers.contains(element) && std::isfinite(observed_.At(element));
  });
}

void Classifier::MeasureOrders() {
  std::vector<const Hypothesis*> plain;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (trial.survived && IsAsAsked(model) && Contains(result_.models, model))
      plain.push_back(trial.hypothesis.get());
  }
  // Without one that is as the program asks, the first that is left: all of them are narrower, and which is not known.
  for (const Trial& trial : trials_) {
    if (plain.empty() && trial.survived && Contains(result_.models, trial.hypothesis->model()))
      plain.push_back(trial.hypothesis.get());
  }
  for (const Hypothesis* each : plain) {
    for (const int64_t element : sample_) {
      const Interval range = each->Enclose(element);
      const double radius = (range.hi - range.lo) / 2;
      if (std::isfinite(radius)) result_.any_order = std::max(result_.any_order, radius);
    }
    each->Forget();
  }
}

double Classifier::ErrorInUlps(const Reference& reference, double stored) const {
  return (stored - reference.hi) / Ulp(stored, *FormatOf(observed_.dtype));
}

double Classifier::MedianError(std::span<const Reference> references, std::span<const double> stored) const {
  std::vector<double> errors;
  for (size_t i = 0; i < references.size(); ++i) {
    const double error = ErrorInUlps(references[i], stored[i]);
    if (std::isfinite(error)) errors.push_back(std::fabs(error));
  }
  if (errors.empty()) return 0;
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  return *middle;
}

}  // namespace ulpscope
