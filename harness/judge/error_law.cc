// The law of errors, learnt from simulated orders.
#include "harness/judge/error_law.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "harness/judge/rule_numbers.h"
#include "harness/num/float_format.h"

namespace ulpscope {

Interval CellOf(const Hypothesis& hypothesis, double stored, double width) {
  if (!std::isfinite(stored)) return {.lo = stored, .hi = stored};
  const auto edge = [&](double direction) {
    // The cell widths of formats from binary64 to 3 bits: the first that leaves the cell brackets its edge.
    double inside = stored, outside = stored;
    for (const double relative :
         {0x1p-54, 0x1p-40, 0x1p-25, 0x1p-18, 0x1p-12, 0x1p-9, 0x1p-6, 0x1p-2, 4.0, 0x1p40, 0x1p300}) {
      outside = stored + direction * std::max(std::fabs(stored) * relative, 0x1p-1000 * relative);
      if (hypothesis.Store(outside) != stored) break;
      inside = outside;
    }
    for (int i = 0; i < kMostHalvings; ++i) {
      if (i >= kFewestHalvings && std::fabs(outside - inside) <= kPartOfError * width) break;
      const double middle = inside + (outside - inside) / 2;
      (hypothesis.Store(middle) == stored ? inside : outside) = middle;
    }
    return inside;
  };
  return {.lo = edge(-1), .hi = edge(1)};
}

namespace {

double NormalCdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }

double CellProbability(double low, double high, double mean, double sigma) {
  const double a = (low - mean) / sigma, b = (high - mean) / sigma;
  // Differences of the small tails keep their digits.
  return a > 0 ? NormalCdf(-a) - NormalCdf(-b) : NormalCdf(b) - NormalCdf(a);
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// w_i: mostly the element's own simulated error, partly the error-to-bound ratio of elements with bounds of similar
/// size. A few huge results must not set the widths of the others, nor sharp bounds those of wide ones.
void LearnWidths(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                 const std::vector<std::vector<double>>& runs, Law* law) {
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
      for (auto at = sizes.lower_bound(size - kAlikeBounds);
           at != sizes.end() && at->first <= size + kAlikeBounds; ++at) {
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
  std::vector<bool> quiet;    ///< rounded like the centre
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

}  // namespace

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
        // In addition to the law's tails, one as long as the largest error of the simulated orders.
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

Learnt Learn(const Hypothesis& hypothesis, std::span<const int64_t> elements) {
  Learnt learnt;
  const auto orders = static_cast<int>(hypothesis.orders().size());
  for (int order = 0; order < orders; ++order) learnt.runs.push_back(hypothesis.Simulate(order, elements));
  learnt.law = LearnLaw(hypothesis, elements, hypothesis.Simulate(-1, elements), learnt.runs);
  return learnt;
}

}  // namespace ulpscope
