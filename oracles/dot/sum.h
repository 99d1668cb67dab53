// Sums of one dot product: block fused multiply-add, split-K and the accumulation orders of every
// accumulator.
//
// A unit step takes one product into a running sum; for blockfma(n,F,mode) it takes a block of n products at
// once, for split_k(partial,combine) the units are chunks. An order is a shape of tree over units, the same
// family for all accumulators, so that a model and an order are independent.
#pragma once

#include <span>
#include <vector>

#include "oracles/dot/orders.h"
#include "oracles/models.h"

namespace ulpscope {

/// One product as it enters a sum.
struct SumTerm {
  TwoDoubles value;
  int exponent =
      0;  ///< of its operands together, at which block units align it: floor(log2|a|) + floor(log2|b|)
};

SumTerm TermOf(double a, double b);

/// `terms` and the running sum `start`, aligned, truncated and added as blockfma does.
double BlockStep(const AccSpec& acc, double start, std::span<const SumTerm> terms);

/// The sum of `terms` in `order`; `addend` may be null. The result is one of the accumulator's values; with
/// an exact accumulator it is the sum in two doubles.
TwoDoubles SumInOrder(const AccSpec& acc, const SumOrder& order, std::span<const SumTerm> terms,
                      const TwoDoubles* addend);

/// One addition of two partial sums, outside a block: to nearest.
double AddPartials(const AccSpec& acc, double x, double y);

}  // namespace ulpscope
