// Explanations beyond the candidate models: the other product, or the narrower operands, whose sum an
// observed result is.
//
// The candidate models are a list; arithmetic is not. If no candidate explains a value, the same exact
// products are summed once more with one thing changed (so many bits of an operand, so many terms, an
// absolute value, a factor). A changed sum that then comes within the errors of a conforming kernel is
// reported. None of these is a proof: each is only consistent with the numbers.
#pragma once

#include <span>

#include "harness/model/oracle.h"
#include "oracles/binding.h"
#include "oracles/plan.h"

namespace ulpscope {

/// The sum that a value is, apart from casts, views and constant factors after it.
struct LinearPart {
  int reduction = -1;  ///< node; -1: the value is no such sum
  double factor = 1;   ///< the factor applied to it before the value
};
LinearPart LinearPartOf(const Plan& plan, int root);

/// The operands of one element's sum; `b` is empty if nothing is multiplied.
struct SearchElement {
  std::span<const double> a, b;
  double centre = 0;  ///< the exact value
  double factor = 1;  ///< of the sum in the value
  double addend = 0;  ///< the rest of the value
};

/// One operand: its name in the program, its precision, the largest magnitude of the whole tensor.
struct SearchOperand {
  std::string name;
  int bits = 53;
  double largest = 0;
};

Search SearchSums(std::span<const SearchElement> elements, std::span<const SearchOperand> operands,
                  const Deviates& deviates);

}  // namespace ulpscope
