// Orders that depend on the terms themselves, and the other forms of a mean, as in some float32 kernels.
//
// No law of errors is learnt from them: sums of sorted terms have errors tens of times larger. They are tried for an
// exact match of every bit, and only if nothing else gives one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "oracles/dot/orders.h"
#include "oracles/dot/sum.h"

namespace ulpscope {

struct FurtherOrder {
  enum class Kind {
    kAscending,      ///< from the most negative term up
    kDescending,     ///< from the largest term down
    kSmallestFirst,  ///< by magnitude
    kLargestFirst,
    kSignsApart,  ///< positive and negative terms, then both sums
    // These apply to a mean only.
    kTimesReciprocal,     ///< the sum times 1/n, rounded once before
    kTermsScaled,         ///< each term times 1/n, then their sum
    kRunning,             ///< m + (x - m) / k, term by term
    kRunningReciprocals,  ///< m + (x - m) * (1 / k)
  };
  Kind kind = Kind::kAscending;
  SumOrder order;  ///< of kTimesReciprocal and kTermsScaled
  std::string name;
};

const std::vector<FurtherOrder>& FurtherOrders(bool of_mean);

/// The float32 sum of `terms`; `further` is not an order of means only.
double SumFurther(const FurtherOrder& further, std::span<const SumTerm> terms);

/// The mean of `terms` in float32, before its output rounding.
double MeanFurther(const FurtherOrder& further, std::span<const double> terms);

}  // namespace ulpscope
