// The law of the errors of one hypothesis: their centre and width, and the likelihood of the observed bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/model/oracle.h"

namespace ulpscope {

/// The values [lo, hi] that Store maps to `stored`, found by bisection to a small part of `width`, a typical error.
Interval CellOf(const Hypothesis& hypothesis, double stored, double width);

/// The error law of one hypothesis, learnt from its simulated orders.
struct Law {
  std::vector<double> centre, width;  ///< c_i and w_i
  double kappa_low = kInf, kappa_high = 0, bias_low = 0, bias_high = 0;
  double largest = 0;  ///< error of any element in any order, in units of its width
  double still = 0;    ///< share of elements that rounding errors do not move to another stored value
};

struct Learnt {
  std::vector<std::vector<double>> runs;
  Law law;
};

Learnt Learn(const Hypothesis& hypothesis, std::span<const int64_t> elements);

/// Sum of log cell probabilities, maximised over the components of the law. Uses the first `count` elements.
double LogLaw(const Hypothesis& hypothesis, const Law& law, std::span<const double> stored, size_t count);

/// How far the observation's law value is from those of the model's own simulated outputs.
double GoodnessOfFit(const Hypothesis& hypothesis, const Law& law, std::span<const double> observed,
                     const std::vector<std::vector<double>>& runs);

}  // namespace ulpscope
