// Error-free transformations.
#include "backends/sdk/exact.h"

#include <cmath>
#include <utility>
#include <vector>

#include "harness/num/error_free.h"

namespace ulpscope::sdk {
namespace {

TwoDoubles Settled(double hi, double lo) {
  return std::isfinite(hi) && std::isfinite(lo) ? TwoDoubles{hi, lo} : TwoDoubles{hi, 0};
}
TwoDoubles Settled(TwoDoubles value) { return Settled(value.hi, value.lo); }

}  // namespace

TwoDoubles ExactSum(double a, double b) { return Settled(TwoSum(a, b)); }

TwoDoubles ExactProduct(double a, double b) { return Settled(TwoProduct(a, b)); }

TwoDoubles Quotient(double a, double b) {
  const double hi = a / b;
  const double rest = std::fma(-hi, b, a);  // a - hi b, exact
  return Settled(hi, rest / b);
}

TwoDoubles SquareRoot(double a) {
  const double hi = std::sqrt(a);
  if (hi == 0) return {hi, 0};
  return Settled(hi, std::fma(-hi, hi, a) / (2 * hi));
}

TwoDoubles ReciprocalSquareRoot(double a) {
  double hi = 1 / std::sqrt(a);
  if (hi == 0 || !std::isfinite(hi)) return {hi, 0};
  // With y = hi: 1/sqrt(a) - y = y (1 - a y^2) / 2 to first order; a y^2 is formed with its rounding errors.
  const TwoDoubles square = ExactProduct(hi, hi);
  const TwoDoubles product = ExactProduct(a, square.hi);
  const double residual = (1 - product.hi) - product.lo - a * square.lo;
  const TwoDoubles corrected = ExactSum(hi, hi * residual / 2);
  return Settled(corrected.hi, corrected.lo);
}

TwoDoubles ExactSum(std::span<const double> terms) {
  std::vector<double>
      partials;  // nonoverlapping, increasing in magnitude; their exact sum is that of the terms so far
  double special = 0;
  bool has_special = false;
  for (double term : terms) {
    if (!std::isfinite(term)) {
      special = has_special ? special + term : term;
      has_special = true;
      continue;
    }
    size_t kept = 0;
    for (size_t i = 0; i < partials.size(); ++i) {
      double partial = partials[i];
      if (std::fabs(term) < std::fabs(partial)) std::swap(term, partial);
      const double hi = term + partial;
      const double lo = partial - (hi - term);
      if (lo != 0) partials[kept++] = lo;
      term = hi;
    }
    partials.resize(kept);
    partials.push_back(term);
  }
  if (has_special) return {special, 0};
  if (partials.empty()) return {0, 0};
  // Largest first: the first inexact sum holds the leading bits; the rest decides only how it is rounded.
  double hi = partials.back();
  double lo = 0;
  size_t left = partials.size() - 1;
  while (left > 0) {
    const TwoDoubles sum = ExactSum(hi, partials[--left]);
    hi = sum.hi;
    lo = sum.lo;
    if (lo != 0) break;
  }
  // hi + lo is exact so far; a tie is broken by the sign of what is left, as in fsum.
  if (left > 0 && ((lo < 0 && partials[left - 1] < 0) || (lo > 0 && partials[left - 1] > 0))) {
    const double doubled = lo * 2;
    const double up = hi + doubled;
    if (doubled == up - hi) {
      hi = up;
      lo = -lo;
    }
  }
  for (size_t i = left; i-- > 0;) lo += partials[i];
  return Settled(hi, lo);
}

TwoDoubles Divide(TwoDoubles value, double n) {
  const double hi = value.hi / n;
  const double rest = std::fma(-hi, n, value.hi) + value.lo;
  const TwoDoubles sum = ExactSum(hi, rest / n);
  return Settled(sum.hi, sum.lo);
}

}  // namespace ulpscope::sdk
