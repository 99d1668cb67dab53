// Differences of pairs of doubles, and shares of them.
#include "harness/ledger/budget.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "harness/base/check.h"
#include "harness/ledger/pairs.h"
#include "harness/num/error_free.h"

namespace ulpscope {

namespace {

using Pairs = std::vector<TwoDoubles>;

/// <a, b>
long double ProductOf(const Pairs& a, const Pairs& b) {
  long double product = 0;
  for (size_t i = 0; i < a.size(); ++i) product += ValueOf(a[i]) * ValueOf(b[i]);
  return product;
}

Pairs Change(const Pairs& before, const Pairs& after) {
  ULPSCOPE_CHECK(before.size() == after.size(), "hybrids of one value have several sizes");
  Pairs change;
  for (size_t i = 0; i < before.size(); ++i) change.push_back(Minus(after[i], before[i]));
  return change;
}

}  // namespace

TwoDoubles Minus(TwoDoubles a, TwoDoubles b) {
  // The differences of the high and the low parts are exact, and if the high parts are equal the low ones remain.
  const TwoDoubles high = TwoSum(a.hi, -b.hi), low = TwoSum(a.lo, -b.lo);
  return Add(high, low);
}

ErrorBudget BookErrors(const BudgetWalk& walk, double precision) {
  Pairs end;
  for (const double each : walk.end) end.push_back({.hi = each, .lo = 0});
  const Pairs error = Change(walk.exact, end);
  const long double whole = ProductOf(error, error);
  const auto count = static_cast<long double>(error.size());
  ErrorBudget budget;
  budget.elements = static_cast<int64_t>(error.size());
  budget.precision = precision;
  if (!error.empty()) budget.rms = static_cast<double>(std::sqrt(whole / count));
  const Pairs* here = &walk.exact;
  const auto enter = [&](const std::string& step, const std::vector<std::string>& with, const Pairs& after) {
    const Pairs change = Change(*here, after);
    BudgetEntry entry{.step = step, .with = with};
    for (const TwoDoubles& each : change) entry.moved += std::fabs(each.hi) > precision ? 1 : 0;
    if (entry.moved == 0) return;
    if (whole > 0) entry.share = static_cast<double>(ProductOf(change, error) / whole);
    entry.rms = static_cast<double>(std::sqrt(ProductOf(change, change) / count));
    budget.entries.push_back(std::move(entry));
    here = &after;
  };
  for (const BudgetWalk::Hybrid& hybrid : walk.hybrids) enter(hybrid.step, hybrid.with, hybrid.values);
  enter("", {}, end);
  return budget;
}

}  // namespace ulpscope
