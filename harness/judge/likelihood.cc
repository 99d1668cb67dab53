// Likelihood: exact matches with simulated orders, the law of errors, and residuals.
#include "harness/judge/likelihood.h"

#include <algorithm>
#include <cmath>

#include "harness/judge/error_law.h"
#include "harness/judge/rule_numbers.h"
#include "harness/num/float_format.h"

namespace ulpscope {
namespace {

/// Root mean square of errors in units of the law, and their mean towards larger magnitudes relative to it.
struct Moments {
  double square = 0, sum = 0, largest = 0;
  size_t count = 0;

  void Add(double error, double centre) {
    square += error * error;
    sum += std::signbit(centre) ? -error : error;
    largest = std::max(largest, std::fabs(error));
    ++count;
  }
  double rms() const { return std::sqrt(square / static_cast<double>(count)); }
  double lean() const { return square == 0 ? 0 : sum / static_cast<double>(count) / rms(); }
};

/// Results of the hypothesis that differ from its rounded exact sums: squared distance after rounding, and number.
struct StoredErrors {
  double squares = 0;
  size_t moved = 0;

  /// `centre`: the rounded exact sum.
  void Add(const Law& law, size_t i, double centre, double stored) {
    if (stored == centre || law.width[i] == 0) return;
    const double error = (stored - law.centre[i]) / law.width[i], square = error * error;
    if (!std::isfinite(error) || square == 0) return;
    squares += square;
    ++moved;
  }
};

/// True if the rounded results are far nearer to the exact ones than those of every simulated order.
bool AreTooNear(const Hypothesis& hypothesis, const Learnt& learnt, std::span<const double> stored) {
  StoredErrors seen;
  std::vector<StoredErrors> orders(learnt.runs.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    const double centre = hypothesis.Store(learnt.law.centre[i]);
    seen.Add(learnt.law, i, centre, stored[i]);
    for (size_t order = 0; order < orders.size(); ++order)
      orders[order].Add(learnt.law, i, centre, hypothesis.Store(learnt.runs[order][i]));
  }
  // The last addition alone leaves half a unit of the sum. A sum joined as a tree has few such errors.
  const double least = std::ranges::min_element(orders, {}, &StoredErrors::squares)->squares;
  // If a coarse output rounding hides most errors, their absence is no evidence.
  const size_t fewest = std::ranges::min_element(orders, {}, &StoredErrors::moved)->moved;
  // A few errors that cancellation amplifies make up most of the squares: a lack of moved results is evidence too.
  return (fewest >= kFewestMoved && seen.squares * kFarNearer * kFarNearer < least) ||
         (fewest >= 2 * kFewestMoved && kRarelyMoved * seen.moved < fewest);
}

/// `stored[i]` is an observed value of the element that law.centre[i] belongs to.
Residuals MeasureResiduals(const Hypothesis& hypothesis, const Learnt& learnt,
                           std::span<const double> stored) {
  const Law& law = learnt.law;
  std::vector<Moments> orders(learnt.runs.size());
  Moments observed;
  double largest = 0;
  for (size_t i = 0; i < stored.size(); ++i) {
    const bool quiet = hypothesis.Store(law.centre[i]) == stored[i];
    if (law.width[i] == 0) {
      if (!quiet) return {.ratio = kInf, .largest = kInf, .lean = kInf, .count = 0, .fits = false};
      continue;
    }
    for (size_t order = 0; order < learnt.runs.size(); ++order) {
      const double error = (learnt.runs[order][i] - law.centre[i]) / law.width[i];
      if (!std::isfinite(error)) continue;
      orders[order].Add(error, law.centre[i]);
      largest = std::max(largest, std::fabs(error));
    }
    double outside = 0;
    if (!quiet) {
      const Interval cell = CellOf(hypothesis, stored[i], law.width[i]);
      outside = std::max(cell.lo - law.centre[i], 0.0) - std::max(law.centre[i] - cell.hi, 0.0);
    }
    observed.Add(outside / law.width[i], law.centre[i]);
  }
  if (observed.count == 0) return {.ratio = 0, .largest = 0, .lean = 0, .count = 0, .fits = true};
  Residuals residuals;
  residuals.ratio = observed.rms() / law.kappa_high;
  residuals.largest = observed.largest / largest;
  double lean = observed.square == 0 ? 0 : kInf;
  for (const Moments& order : orders) {
    if (order.count > 0 && observed.square > 0)
      lean = std::min(lean, std::fabs(observed.lean() - order.lean()));
  }
  residuals.lean = lean;
  residuals.count = observed.count;
  residuals.too_near = AreTooNear(hypothesis, learnt, stored);
  residuals.fits = FitsOrders(residuals.ratio, residuals.largest, lean, observed.count);
  return residuals;
}

double Tempering(size_t elements) { return std::min(1.0, kTemperedOutputs / static_cast<double>(elements)); }

}  // namespace

size_t ProbeCount(size_t elements) { return std::min<size_t>(elements, elements > 64 ? 24 : 8); }

bool FitsOrders(double ratio, double largest, double lean, size_t elements) {
  const double few = 1 / std::sqrt(static_cast<double>(std::max<size_t>(elements, 1)));
  return ratio <= kWorstRatio + kRoomOfFew * few && largest <= kWorstLargest + kRoomOfFew * few &&
         lean <= kWorstLean + kRoomOfLean * few;
}

LikelihoodResult ExactMatch(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                            std::span<const double> observed) {
  LikelihoodResult result;
  const auto matches = [&](int order, size_t count) {
    const auto run = hypothesis.Stored(order, elements.first(count));
    return std::equal(run.begin(), run.end(), observed.begin(), SameValue);
  };
  const size_t probe = ProbeCount(elements.size()), first = std::min<size_t>(2, probe);
  if (hypothesis.order_free()) {
    // Without a sum every order rounds the steps inside an op, each in its format; -1 rounds none of them.
    for (const int order : {-1, 0}) {
      if (order >= 0 && hypothesis.orders().empty()) continue;
      if (result.matches == 0 && matches(order, probe) && matches(order, elements.size())) result.matches = 1;
    }
    result.log_likelihood = result.matches > 0 ? 0 : -kInf;
    result.residuals.fits = result.matches > 0;
    return result;
  }
  const auto orders = static_cast<int>(hypothesis.orders().size());
  for (int order = 0; order < orders; ++order) {
    // Most orders are refuted by the first few elements.
    if (!matches(order, first) || !matches(order, probe) || !matches(order, elements.size())) continue;
    ++result.matches;
    if (result.matching_order < 0) result.matching_order = order;
  }
  result.log_likelihood = result.matches > 0 ? std::log(0.5 * result.matches / orders) : -kInf;
  result.residuals.fits = result.matches > 0;
  return result;
}

size_t FewestMisses(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                    std::span<const double> observed, size_t most, size_t enough, int first) {
  size_t fewest = most;
  std::vector<int> orders = hypothesis.Orders();
  // Without a sum, the first order represents all: it rounds the steps inside an op.
  if (hypothesis.order_free() && !hypothesis.orders().empty()) orders = {0};
  std::stable_partition(orders.begin(), orders.end(), [&](int order) { return order == first; });
  for (const int order : orders) {
    if (fewest <= enough) break;
    size_t misses = 0;
    // Each round tests four times as many elements: most orders are refuted early.
    for (size_t count = 32, last = 0; misses < fewest && last < elements.size(); last = count, count *= 4) {
      count = std::min(count, elements.size());
      misses += DifferentValues(hypothesis.Stored(order, elements.subspan(last, count - last)),
                                observed.subspan(last, count - last));
    }
    fewest = std::min(fewest, misses);
  }
  return fewest;
}

size_t OrdersApart(const Hypothesis& hypothesis, std::span<const int64_t> elements) {
  const std::vector<int> orders = hypothesis.Orders();
  const size_t count = std::min(kOrdersCompared, orders.size());
  std::vector<std::vector<double>> runs;
  for (size_t i = 0; i < count; ++i)
    runs.push_back(hypothesis.Stored(orders[i * orders.size() / count], elements));
  std::vector<size_t> apart;
  for (size_t i = 0; i < runs.size(); ++i) {
    size_t nearest = elements.size();
    for (size_t j = 0; j < runs.size(); ++j) {
      if (i != j) nearest = std::min(nearest, DifferentValues(runs[i], runs[j]));
    }
    apart.push_back(nearest);
  }
  if (apart.size() < 2) return 0;
  const auto middle = apart.begin() + static_cast<std::ptrdiff_t>(apart.size() / 2);
  std::nth_element(apart.begin(), middle, apart.end());
  return *middle;
}

double ProbeLaw(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                std::span<const double> observed) {
  if (hypothesis.order_free()) return -kInf;
  const size_t probe = ProbeCount(elements.size());
  const Learnt learnt = Learn(hypothesis, elements.first(probe));
  return Tempering(elements.size()) * LogLaw(hypothesis, learnt.law, observed, probe);
}

bool MayFit(const Hypothesis& hypothesis, const Hypothesis& like, std::span<const int64_t> elements,
            std::span<const double> observed) {
  if (hypothesis.order_free() || like.order_free()) return true;
  // Four elements in every order: enough to see that a sum is hundreds of its errors off.
  const size_t few = std::min(elements.size(), kMayFit);
  const auto some = elements.first(few);
  const Learnt learnt = Learn(like, some);
  const auto centre = &hypothesis == &like ? learnt.law.centre : hypothesis.Simulate(-1, some);
  double square = 0;
  for (size_t i = 0; i < few; ++i) {
    if (learnt.law.width[i] == 0 || !std::isfinite(observed[i]) || hypothesis.Store(centre[i]) == observed[i])
      continue;
    const Interval cell = CellOf(hypothesis, observed[i], learnt.law.width[i]);
    const double outside = std::max({cell.lo - centre[i], centre[i] - cell.hi, 0.0}) / learnt.law.width[i];
    square += outside * outside;
  }
  return std::sqrt(square / static_cast<double>(few)) <= kRoomOfFirstLook * learnt.law.kappa_high;
}

LikelihoodResult Likelihood(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                            std::span<const double> observed, const LikelihoodResult& match,
                            FitCheck fit_check) {
  LikelihoodResult result = match;
  if (hypothesis.order_free()) return result;
  const Learnt learnt = Learn(hypothesis, elements);
  // In logarithms: for a hundred float32 sums the law's value underflows binary64.
  const double composite =
      Tempering(elements.size()) * LogLaw(hypothesis, learnt.law, observed, elements.size());
  const double exact = std::log(static_cast<double>(match.matches) / static_cast<double>(learnt.runs.size()));
  const double more = std::max(composite, exact), less = std::min(composite, exact);
  result.log_likelihood = std::log(0.5) + more + (less > -kInf ? std::log1p(std::exp(less - more)) : 0);
  if (match.matches == 0) result.residuals = MeasureResiduals(hypothesis, learnt, observed);
  if (match.matches == 0 && fit_check == FitCheck::kMeasure && result.log_likelihood > -kInf)
    result.fit = GoodnessOfFit(hypothesis, learnt.law, observed, learnt.runs);
  return result;
}

Yardstick::Yardstick(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                     std::span<const double> stored)
    : hypothesis_(hypothesis), stored_(stored) {
  const Learnt learnt = Learn(hypothesis, elements);
  centre_ = learnt.law.centre;
  for (size_t i = 0; i < stored.size(); ++i) {
    error_.push_back(learnt.law.width[i] * learnt.law.kappa_high);
    cells_.push_back(CellOf(hypothesis, stored[i], learnt.law.width[i]));
  }
  residuals_ = MeasureResiduals(hypothesis, learnt, stored);
}

double Yardstick::Deviation(size_t i, double sum) const {
  if (hypothesis_.Store(sum) == stored_[i]) return 0;
  const double outside = std::max({cells_[i].lo - sum, sum - cells_[i].hi, 0.0});
  return error_[i] > 0 ? outside / error_[i] : kInf;
}

}  // namespace ulpscope
