// Booking an error: from the hybrids of one backend with the exact program to the entries of a budget (harness/model/budget.h).
#pragma once

#include <string>
#include <vector>

#include "harness/model/budget.h"
#include "harness/num/float_format.h"

namespace ulpscope {

/// The path of some elements of one value from their exact results to a backend's. All are finite, and as many.
struct BudgetWalk {
  struct Hybrid {
    std::string step;                    ///< the values of the steps up to this one are the backend's
    std::vector<std::string> with = {};  ///< steps before it that are so from here on, and not before
    std::vector<TwoDoubles> values;
  };
  std::vector<TwoDoubles> exact = {};
  std::vector<Hybrid> hybrids = {};  ///< in program order
  std::vector<double> end = {};
};

/// a - b, to 2^-100 of it.
TwoDoubles Minus(TwoDoubles a, TwoDoubles b);

/// The entries in which some element is larger than `precision`: a smaller change is added to the next entry. A
/// remainder that no hybrid accounts for is an entry without a step. Fills elements, rms, precision and entries; the
/// caller fills names and places.
ErrorBudget BookErrors(const BudgetWalk& walk, double precision);

}  // namespace ulpscope
