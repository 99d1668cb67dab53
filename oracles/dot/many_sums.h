// ManySums: sums of many elements at once in float32, by the processor's own arithmetic.
//
// Most sums are in float32, and the processor has that: a fused multiply-add of two float32 numbers is one step of such
// a sum, rounded once. Elements are side by side in the lanes of vectors; an order of summation is the same for all of
// them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "oracles/dot/orders.h"
#include "oracles/models.h"

namespace ulpscope {

class ManySums {
 public:
  /// True if this processor can take the steps of such sums itself.
  static bool Can(const AccSpec& acc, const RoundSpec& prod);

  /// For `elements` sums of `terms` products in each of `passes`.
  ManySums(size_t elements, size_t passes, size_t terms);
  /// Sets one product; false if a factor is no float32 number.
  bool Set(size_t element, size_t pass, size_t term, double a, double b);
  /// The sums in one order: the result of SumInOrder, pass by pass, each added to those before it.
  std::vector<double> Sum(const AccSpec& acc, const RoundSpec& prod, const SumOrder& order) const;

 private:
  size_t elements_, passes_, terms_, lanes_, groups_;
  std::vector<float> a_, b_;  ///< by group, pass, term, lane
};

}  // namespace ulpscope
