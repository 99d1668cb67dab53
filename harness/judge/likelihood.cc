// The order-unknown error law.
#include "harness/judge/likelihood.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "harness/num/float_format.h"

namespace ulpscope {
namespace {

constexpr double kTemperedOutputs =
    128;  // beyond this many outputs the law is tempered: coverage fell without it
constexpr size_t kFitElements = 64;

/// The values that Store maps to `stored`: [lo, hi], found by bisection because Store is monotone. `width`: a typical error, of which
/// the edges are a small part off.
Interval CellOf(const Hypothesis& hypothesis, double stored, double width) {
  if (!std::isfinite(stored)) return {.lo = stored, .hi = stored};
  const auto edge = [&](double direction) {
    // The widths of the formats' cells, from binary64 to 3 bits: the first that leaves the cell brackets its
    // edge.
    double inside = stored, outside = stored;
    for (const double relative :
         {0x1p-54, 0x1p-40, 0x1p-25, 0x1p-18, 0x1p-12, 0x1p-9, 0x1p-6, 0x1p-2, 4.0, 0x1p40, 0x1p300}) {
      outside = stored + direction * std::max(std::fabs(stored) * relative, 0x1p-1000 * relative);
      if (hypothesis.Store(outside) != stored) break;
      inside = outside;
    }
    constexpr int kAtLeast = 16, kAtMost = 53;
    constexpr double kPart = 1.0 / 64;
    for (int i = 0; i < kAtMost; ++i) {
      if (i >= kAtLeast && std::fabs(outside - inside) <= kPart * width) break;
      const double middle = inside + (outside - inside) / 2;
      (hypothesis.Store(middle) == stored ? inside : outside) = middle;
    }
    return inside;
  };
  return {.lo = edge(-1), .hi = edge(1)};
}

double NormalCdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }

double CellProbability(double low, double high, double mean, double sigma) {
  const double a = (low - mean) / sigma, b = (high - mean) / sigma;
  // Differences of tails on the side where they are small keep their digits.
  return a > 0 ? NormalCdf(-a) - NormalCdf(-b) : NormalCdf(b) - NormalCdf(a);
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The error law of one hypothesis, learnt from its simulated orders.
struct Law {
  std::vector<double> centre, width;  ///< c_i and w_i
  double kappa_low = kInf, kappa_high = 0, bias_low = 0, bias_high = 0;
  double largest = 0;  ///< error of any element in any order, in units of its width
  double still = 0;    ///< share of elements that rounding errors do not move to another stored value
};

/// w_i: mostly the element's own simulated error, partly what those of elements with bounds of its own size are of these: a few huge
/// results tell nothing of the others, nor do sharp bounds of wide ones.
void LearnWidths(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                 const std::vector<std::vector<double>>& runs, Law* law) {
  constexpr int kAlike = 3;  // binary orders of magnitude
  struct Sums {
    double errors = 0, bounds = 0;
  };
  const size_t n = elements.size();
  std::vector<double> mean_square(n, 0), scale(n, 0);
  std::map<int, Sums> sizes;
  for (size_t i = 0; i < n; ++i) {
    const Interval range = hypothesis.Enclose(elements[i]);
    const double radius = (range.hi - range.lo) / 2;
    for (const auto& run : runs) {
      const double error = run[i] - law->centre[i];
      if (std::isfinite(error)) mean_square[i] += error * error / static_cast<double>(runs.size());
    }
    if (!std::isfinite(radius) || radius <= 0) continue;
    scale[i] = radius;
    Sums& alike = sizes[std::ilogb(radius)];
    alike.errors += mean_square[i];
    alike.bounds += radius * radius;
  }
  for (size_t i = 0; i < n; ++i) {
    double share = 0;
    if (scale[i] > 0) {
      Sums all;
      const int size = std::ilogb(scale[i]);
      for (auto at = sizes.lower_bound(size - kAlike); at != sizes.end() && at->first <= size + kAlike;
           ++at) {
        all.errors += at->second.errors;
        all.bounds += at->second.bounds;
      }
      share = all.bounds > 0 ? all.errors / all.bounds : 0;
    }
    law->width[i] = std::sqrt(0.7 * mean_square[i] + 0.3 * share * scale[i] * scale[i]);
  }
}

Law LearnLaw(const Hypothesis& hypothesis, std::span<const int64_t> elements,
             const std::vector<double>& centre, const std::vector<std::vector<double>>& runs) {
  const size_t n = elements.size();
  Law law{.centre = centre, .width = std::vector<double>(n)};
  LearnWidths(hypothesis, elements, runs, &law);
  int64_t still = 0;
  for (const auto& run : runs) {
    double square = 0, bias = 0;
    for (size_t i = 0; i < n; ++i) {
      if (hypothesis.Store(run[i]) == hypothesis.Store(centre[i])) ++still;
      if (law.width[i] == 0) continue;
      const double r = (run[i] - centre[i]) / law.width[i];
      square += r * r;
      if (std::isfinite(r)) law.largest = std::max(law.largest, std::fabs(r));
      bias += std::signbit(centre[i]) ? -r : r;
    }
    const double kappa = std::sqrt(square / static_cast<double>(n));
    bias /= static_cast<double>(n);
    if (std::fabs(bias) < 3 * kappa / std::sqrt(static_cast<double>(n))) bias = 0;
    law.kappa_low = std::min(law.kappa_low, kappa);
    law.kappa_high = std::max(law.kappa_high, kappa);
    law.bias_low = std::min(law.bias_low, bias);
    law.bias_high = std::max(law.bias_high, bias);
  }
  law.still = static_cast<double>(still) / static_cast<double>(n * runs.size());
  return law;
}

/// The cells of the stored values in units of the law.
struct Cells {
  std::vector<double> low, high;
  std::vector<size_t> index;  ///< elements that can move
  std::vector<bool> quiet;    ///< stored as the centre would be
  double floor = 0;   ///< least half-width: cancellation leaves results on the lattice of the larger operands
  double square = 0;  ///< winsorised mean square of the residuals, less the cells' own width
  double bias = 0;
  bool possible = true;
};

Cells MeasureCells(const Hypothesis& hypothesis, const Law& law, std::span<const double> stored,
                   size_t count) {
  Cells cells;
  std::vector<double> half, squares;
  for (size_t i = 0; i < count; ++i) {
    const bool quiet = hypothesis.Store(law.centre[i]) == stored[i];
    if (law.width[i] == 0) {
      if (!quiet) cells.possible = false;  // nothing can move this element, and yet it moved
      continue;
    }
    const Interval cell = CellOf(hypothesis, stored[i], law.width[i]);
    const double low = (cell.lo - law.centre[i]) / law.width[i],
                 high = (cell.hi - law.centre[i]) / law.width[i];
    if (!std::isfinite(low) || !std::isfinite(high)) cells.possible = false;
    cells.low.push_back(low);
    cells.high.push_back(high);
    cells.index.push_back(i);
    cells.quiet.push_back(quiet);
    half.push_back((high - low) / 2);
    squares.push_back((high + low) * (high + low) / 4);
  }
  if (half.empty()) return cells;
  cells.floor = 0.25 * Median(half);
  const double cap = 25 * std::max(Median(squares), 1e-300), n = static_cast<double>(half.size());
  for (size_t i = 0; i < half.size(); ++i) {
    cells.square += (std::min(squares[i], cap) - half[i] * half[i] / 3) / n;
    const double residual = (cells.low[i] + cells.high[i]) / 2;
    cells.bias += (std::signbit(law.centre[cells.index[i]]) ? -residual : residual) / n;
  }
  return cells;
}

/// Sum of log cell probabilities, maximised over the components of the law. Uses the first `count` elements.
double LogLaw(const Hypothesis& hypothesis, const Law& law, std::span<const double> stored, size_t count) {
  const Cells cells = MeasureCells(hypothesis, law, stored, count);
  if (!cells.possible) return -kInf;
  if (cells.index.empty()) return 0;
  const double least = law.kappa_low / 1.7, most = std::max(law.kappa_high * 1.7, least);
  const double kappa = std::clamp(std::sqrt(std::max(cells.square, 0.0)), least, most);
  const double shift =
      std::clamp(cells.bias, std::min(1.4 * law.bias_low, 0.0), std::max(1.4 * law.bias_high, 0.0));
  const double still = 0.98 * law.still;
  double best = -kInf;
  for (const double factor : {0.8, 1.0, 1.25}) {
    const double sigma = std::max(factor * kappa / std::sqrt(std::max(1 - law.still, 1e-3)), 1e-12);
    const double longest = std::max(4 * sigma, law.largest);
    for (const double b : {0.0, shift}) {
      double sum = 0;
      for (size_t i = 0; i < cells.index.size(); ++i) {
        const double middle = (cells.low[i] + cells.high[i]) / 2,
                     reach = std::max((cells.high[i] - cells.low[i]) / 2, cells.floor);
        const double mean = std::signbit(law.centre[cells.index[i]]) ? -b : b;
        // Beside the tails of the law, one as long as the largest error of the simulated orders.
        const double moved = 0.97 * CellProbability(middle - reach, middle + reach, mean, sigma) +
                             0.03 * CellProbability(middle - reach, middle + reach, mean, 4 * sigma) +
                             0.001 * CellProbability(middle - reach, middle + reach, mean, longest);
        sum += std::log((cells.quiet[i] ? still : 0.0) + (1 - still) * moved + 1e-300);
      }
      best = std::max(best, sum);
    }
  }
  return best;
}

/// How far the observation's law value lies from those of the model's own simulated outputs.
double GoodnessOfFit(const Hypothesis& hypothesis, const Law& law, std::span<const double> observed,
                     const std::vector<std::vector<double>>& runs) {
  const size_t count = std::min(kFitElements, observed.size());
  std::vector<double> own;
  for (const auto& run : runs) {
    std::vector<double> stored(count);
    for (size_t i = 0; i < count; ++i) stored[i] = hypothesis.Store(run[i]);
    const double fit = LogLaw(hypothesis, law, stored, count);
    if (std::isfinite(fit)) own.push_back(fit);
  }
  if (own.empty()) return 0;
  const double mean = std::accumulate(own.begin(), own.end(), 0.0) / static_cast<double>(own.size());
  double variance = 0;
  for (const double fit : own) variance += (fit - mean) * (fit - mean) / static_cast<double>(own.size());
  return (LogLaw(hypothesis, law, observed, count) - mean) /
         (std::sqrt(variance) + 0.5 + 0.02 * std::fabs(mean));
}

struct Learnt {
  std::vector<std::vector<double>> runs;
  Law law;
};

Learnt Learn(const Hypothesis& hypothesis, std::span<const int64_t> elements) {
  Learnt learnt;
  const auto orders = static_cast<int>(hypothesis.orders().size());
  for (int order = 0; order < orders; ++order) learnt.runs.push_back(hypothesis.Simulate(order, elements));
  learnt.law = LearnLaw(hypothesis, elements, hypothesis.Simulate(-1, elements), learnt.runs);
  return learnt;
}

/// Root mean square of errors in units of the law, and their mean towards larger magnitudes as a share of it.
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

/// `stored[i]` is an observed value of the element that law.centre[i] stands for.
Residuals MeasureResiduals(const Hypothesis& hypothesis, const Learnt& learnt,
                           std::span<const double> stored) {
  const Law& law = learnt.law;
  std::vector<Moments> orders(learnt.runs.size());
  Moments observed;
  double largest = 0, off = 0;
  size_t moved_here = 0;
  std::vector<double> off_by(learnt.runs.size(), 0);
  std::vector<size_t> moved(learnt.runs.size(),
                            0);  // elements that an order does not leave at the centre's stored value
  for (size_t i = 0; i < stored.size(); ++i) {
    const double centre = hypothesis.Store(law.centre[i]);
    const auto square_off = [&](double value) {
      const double error = value == centre || law.width[i] == 0 ? 0 : (value - law.centre[i]) / law.width[i];
      return std::isfinite(error) ? error * error : 0;
    };
    const double here = square_off(stored[i]);
    off += here;
    moved_here += here > 0 ? 1 : 0;
    for (size_t order = 0; order < learnt.runs.size(); ++order) {
      const double square = square_off(hypothesis.Store(learnt.runs[order][i]));
      off_by[order] += square;
      moved[order] += square > 0 ? 1 : 0;
    }
    const bool quiet = centre == stored[i];
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
  // The last addition alone leaves half a unit of the sum. What is joined as a tree errs by few of these.
  constexpr double kFar = 16;
  constexpr size_t kFewest = 16;
  const double least = *std::ranges::min_element(off_by);
  // Where a coarse store hides most errors, it tells nothing that none shows.
  const size_t fewest = *std::ranges::min_element(moved);
  residuals.too_near = fewest >= kFewest && off * kFar * kFar < least;
  // A few that cancellation blows up are most of the squares: hardly any that moves is as telling.
  constexpr size_t kRarely = 4;
  residuals.too_near = residuals.too_near || (fewest >= 2 * kFewest && kRarely * moved_here < fewest);
  residuals.fits = FitsOrders(residuals.ratio, residuals.largest, lean, observed.count);
  return residuals;
}

double Tempering(size_t elements) { return std::min(1.0, kTemperedOutputs / static_cast<double>(elements)); }

}  // namespace

size_t ProbeCount(size_t elements) { return std::min<size_t>(elements, elements > 64 ? 24 : 8); }

bool FitsOrders(double ratio, double largest, double lean, size_t elements) {
  const double few = 1 / std::sqrt(static_cast<double>(std::max<size_t>(elements, 1)));
  return ratio <= 2 + 6 * few && largest <= 4 + 6 * few && lean <= 0.2 + 3 * few;
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
    // Without a sum any order rounds the steps inside an op, each in its format; -1 rounds none of them.
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
  // Without a sum the first order stands for all: it rounds the steps inside an op.
  if (hypothesis.order_free() && !hypothesis.orders().empty()) orders = {0};
  std::stable_partition(orders.begin(), orders.end(), [&](int order) { return order == first; });
  for (const int order : orders) {
    if (fewest <= enough) break;
    size_t misses = 0;
    // Each step asks for four times as many: most are refuted early.
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
  constexpr size_t kSome = 24;
  const std::vector<int> orders = hypothesis.Orders();
  const size_t count = std::min(kSome, orders.size());
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
  constexpr double kRoom = 6;
  return std::sqrt(square / static_cast<double>(few)) <= kRoom * learnt.law.kappa_high;
}

LikelihoodResult Likelihood(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                            std::span<const double> observed, const LikelihoodResult& match,
                            FitCheck fit_check) {
  LikelihoodResult result = match;
  if (hypothesis.order_free()) return result;
  const Learnt learnt = Learn(hypothesis, elements);
  // In logarithms: of a hundred sums in float32 the law gives less than a binary64 holds.
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
