// Likelihood of an observation under a precision model when the accumulation order is not known.
//
// A bit-exact match with one of the simulated orders has half the weight. An error law for any other order has the
// other half: the error of an element is (b sgn(c) + kappa N(0,1)) w, with w its typical error over the simulated
// orders. The likelihood of the observed bits is the probability of the stored value's rounding cell. The law is
// tempered for many outputs: errors of one matrix product are not independent. This stage ranks; it never proves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/model/oracle.h"

namespace ulpscope {

/// Errors beyond the rounding cell of the stored result, relative to those of the model's own orders.
struct Residuals {
  double ratio = 0;       ///< their root mean square, over the worst simulated order's before rounding
  double largest = 0;     ///< the largest, over the largest of all simulated orders
  double lean = 0;        ///< how much more they are biased than those of the nearest simulated order
  bool too_near = false;  ///< after rounding, far smaller than those of every simulated order
  size_t count = 0;
  bool fits = false;
};

/// A conforming order that is not simulated has errors like those that are: their root mean square stays below 2 + 6 /
/// sqrt(n) times the worst simulated order's, the largest below four times the largest. Sequential sums are among the
/// simulated orders, and no sum in use is worse. Smaller errors cannot be distinguished from a conforming order; larger
/// ones come from no order of this model. A truncating accumulator errs to one side: its bias (mean error over root
/// mean square) is within `lean` = 0.2 + 3 / sqrt(n) of that of one of the orders.
bool FitsOrders(double ratio, double largest, double lean, size_t elements);

struct LikelihoodResult {
  double log_likelihood = 0;  ///< -infinity: these bits cannot come from the simulated family
  int matches = 0;            ///< simulated orders that give every bit
  int matching_order = -1;    ///< the first of them
  double fit = 0;             ///< z-score of the goodness of fit against the model's own simulated outputs
  Residuals residuals;
};

/// The bit-exact part alone: which simulated orders give every bit. `observed[i]` is the stored value of `elements[i]`.
LikelihoodResult ExactMatch(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                            std::span<const double> observed);

/// The number of observed values that the best simulated order misses; `most` if all miss as many. Stops at an order
/// that misses no more than `enough`. Elements of an earlier sample come first, as does the order `first` if it can
/// decide.
size_t FewestMisses(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                    std::span<const double> observed, size_t most, size_t enough = 0, int first = -1);

/// How many stored values differ between an order and the nearest other one: the median of some; 0 for one order.
size_t OrdersApart(const Hypothesis& hypothesis, std::span<const int64_t> elements);

/// Elements that ProbeLaw looks at.
size_t ProbeCount(size_t elements);

/// The law's logarithm on the first few elements: cheap, and in practice an upper bound of the whole, since each other
/// element can only lower it. -infinity for models without an accumulation order.
double ProbeLaw(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                std::span<const double> observed);

/// Tests on a few elements whether the residuals can be those of the model's orders. `like`: a model of the same sums
/// with unrounded operands; its errors stand for this one's, and only the centre is computed for this one.
bool MayFit(const Hypothesis& hypothesis, const Hypothesis& like, std::span<const int64_t> elements,
            std::span<const double> observed);

/// The goodness of fit matters only if no model matches exactly.
enum class FitCheck { kSkip, kMeasure };

/// The whole likelihood, given ExactMatch's answer.
LikelihoodResult Likelihood(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                            std::span<const double> observed, const LikelihoodResult& match,
                            FitCheck fit_check);

/// How far off conforming orders of one model are at each element: the measure for other explanations.
class Yardstick {
 public:
  /// `stored[i]` is the observed value of `elements[i]`. Keeps both spans.
  Yardstick(const Hypothesis& hypothesis, std::span<const int64_t> elements, std::span<const double> stored);

  /// The exact sum before its output rounding.
  double centre(size_t i) const { return centre_[i]; }
  /// The distance of `sum` from the observed value's rounding cell, in typical errors of the worst order; 0 inside.
  double Deviation(size_t i, double sum) const;
  const Residuals& residuals() const { return residuals_; }

 private:
  const Hypothesis& hypothesis_;
  std::span<const double> stored_;
  std::vector<double> centre_, error_;
  std::vector<Interval> cells_;
  Residuals residuals_;
};

}  // namespace ulpscope
