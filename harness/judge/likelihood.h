// Likelihood of an observation under a precision model when the accumulation order is not known.
//
// Half the weight lies on a bit-exact match with one of the simulated orders, half on an error law for any
// other order: the error of an element is (b sgn(c) + kappa N(0,1)) w, with w the element's typical error
// over the simulated orders, and the observed bits are the probability of the rounding cell that the stored
// value came from. The law is tempered for many outputs, because errors of one matrix product are not
// independent. This stage ranks; it never proves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/model/oracle.h"

namespace ulpscope {

struct LikelihoodResult {
  double log_likelihood = 0;  ///< -infinity: these bits cannot come from the simulated family
  int matches = 0;            ///< simulated orders that give every bit
  int matching_order = -1;    ///< the first of them
  double fit = 0;             ///< z-score of the goodness of fit against the model's own simulated outputs
};

/// The first half alone: which simulated orders give every bit. `observed[i]` is the stored value of
/// `elements[i]`.
LikelihoodResult ExactMatch(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                            std::span<const double> observed);

/// The law's logarithm on the first few elements: cheap, and an upper bound of the whole in practice, since
/// each further element can only lower it. -infinity for models without an accumulation order.
double ProbeLaw(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                std::span<const double> observed);

/// The goodness of fit matters only where no model matches exactly.
enum class FitCheck { kSkip, kMeasure };

/// The whole likelihood, given ExactMatch's answer.
LikelihoodResult Likelihood(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                            std::span<const double> observed, const LikelihoodResult& match,
                            FitCheck fit_check);

}  // namespace ulpscope
