// Errors of two sides on the same elements.
#include "harness/ledger/nearer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "harness/num/float_format.h"

namespace ulpscope {
namespace {

/// The errors of one side as they are measured.
struct Errors {
  std::vector<double> absolute;
  ProgramError told;

  void Add(int64_t element, double stored, const Reference& due, const FloatFormat& format) {
    const double error = std::fabs((stored - due.hi) - due.lo);
    // Equal infinities have no error; if one side alone is infinite, or is a NaN, the error is infinite.
    const double size = stored == due.hi    ? std::fabs(due.lo) * (std::isfinite(due.lo) ? 1 : 0)
                        : std::isnan(error) ? std::numeric_limits<double>::infinity()
                                            : error;
    absolute.push_back(size);
    told.largest_ulp = std::max(told.largest_ulp, std::fabs(UlpError(stored, due.value(), format)));
    if (told.worst < 0 || size > told.largest) {
      told.largest = size;
      told.worst = element;
      told.observed = stored;
      told.exact = due.hi;
    }
  }

  void End() {
    double squares = 0;
    for (const double each : absolute) squares += each * each;
    told.rms = std::sqrt(squares / static_cast<double>(absolute.size()));
    std::vector<double> sorted = absolute;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    told.median = *middle;
  }
};

/// By how many standard errors the mean squared errors of two sides have to differ, element by element, before one of them is called nearer:
/// by three they do by chance in one of 370 comparisons of two that are equally near.
constexpr double kStandardErrors = 3;

Nearness::Side NearerOf(const std::vector<double>& a, const std::vector<double>& b) {
  double mean = 0, squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double less = a[i] * a[i] - b[i] * b[i];
    if (std::isnan(less) || std::isinf(less)) return Nearness::Side::kNeither;
    mean += less;
    squares += less * less;
  }
  const auto count = static_cast<double>(a.size());
  mean /= count;
  const double variance = std::max(0.0, squares / count - mean * mean);
  if (std::fabs(mean) <= kStandardErrors * std::sqrt(variance / count)) return Nearness::Side::kNeither;
  return mean > 0 ? Nearness::Side::kSecond : Nearness::Side::kFirst;
}

}  // namespace

std::optional<Nearness> MeasureNearness(std::span<const int64_t> elements,
                                        std::span<const Reference> references, const TensorData& a,
                                        const TensorData& b) {
  const FloatFormat& format = *FormatOf(a.dtype);
  Errors of_a, of_b;
  double squares = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    const Reference& due = references[i];
    if (due.kind == ReferenceKind::kUndecided || due.kind == ReferenceKind::kDomain) continue;
    of_a.Add(elements[i], a.At(elements[i]), due, format);
    of_b.Add(elements[i], b.At(elements[i]), due, format);
    squares += due.hi * due.hi;
  }
  if (of_a.absolute.empty()) return std::nullopt;
  of_a.End();
  of_b.End();
  return Nearness{.elements = static_cast<int64_t>(of_a.absolute.size()),
                  .scale = std::sqrt(squares / static_cast<double>(of_a.absolute.size())),
                  .first = of_a.told,
                  .second = of_b.told,
                  .nearer = NearerOf(of_a.absolute, of_b.absolute)};
}

}  // namespace ulpscope
