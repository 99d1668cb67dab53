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

/// Errors beyond the rounding cell of what is stored, in units of what the model's own orders do at that element.
struct Residuals {
  double ratio = 0;       ///< their root mean square, over that of the worst simulated order before its store
  double largest = 0;     ///< the largest, over the largest of all simulated orders
  double lean = 0;        ///< how much further they lean than those of the nearest simulated order
  bool too_near = false;  ///< far smaller, as they are stored, than those of every simulated order
  size_t count = 0;
  bool fits = false;
};

/// An honest order that is not simulated errs like those that are: the root mean square of its errors stays below
/// 2 + 6 / sqrt(n) times the worst one's, its largest error below four times the largest. Sequential sums are among the
/// simulated orders, and nothing that people run is worse. What errs by less than that is not told from an honest
/// order; what errs by more is no order of this model. A truncating sum errs to one side: the mean of the errors, as a
/// share of their root mean square, comes within `lean` = 0.2 + 3 / sqrt(n) of that of one of the orders.
bool FitsOrders(double ratio, double largest, double lean, size_t elements);

struct LikelihoodResult {
  double log_likelihood = 0;  ///< -infinity: these bits cannot come from the simulated family
  int matches = 0;            ///< simulated orders that give every bit
  int matching_order = -1;    ///< the first of them
  double fit = 0;             ///< z-score of the goodness of fit against the model's own simulated outputs
  Residuals residuals;
};

/// The first half alone: which simulated orders give every bit. `observed[i]` is the stored value of
/// `elements[i]`.
LikelihoodResult ExactMatch(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                            std::span<const double> observed);

/// How many of the observed values the simulated order that misses fewest does not give; `most` where all miss as many. No order is
/// looked for that misses fewer than `enough`. Elements of a sample that was asked before come first; the order `first` does, where it is
/// one that can tell.
size_t FewestMisses(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                    std::span<const double> observed, size_t most, size_t enough = 0, int first = -1);

/// In how many stored values a simulated order of the model differs from the one nearest to it: the median of some. 0 where there is one.
size_t OrdersApart(const Hypothesis& hypothesis, std::span<const int64_t> elements);

/// Elements that ProbeLaw looks at.
size_t ProbeCount(size_t elements);

/// The law's logarithm on the first few elements: cheap, and an upper bound of the whole in practice, since
/// each further element can only lower it. -infinity for models without an accumulation order.
double ProbeLaw(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                std::span<const double> observed);

/// A few elements alone: whether the residuals can be those of the model's orders. `like`: a model of the same sums
/// whose operands are not rounded; its errors are taken for this one's, and only the centre is this one's own.
bool MayFit(const Hypothesis& hypothesis, const Hypothesis& like, std::span<const int64_t> elements,
            std::span<const double> observed);

/// The goodness of fit matters only where no model matches exactly.
enum class FitCheck { kSkip, kMeasure };

/// The whole likelihood, given ExactMatch's answer.
LikelihoodResult Likelihood(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                            std::span<const double> observed, const LikelihoodResult& match,
                            FitCheck fit_check);

/// How far off honest orders of one model are at each element: what other explanations are measured with.
class Yardstick {
 public:
  /// `stored[i]` is the observed value of `elements[i]`. Keeps both spans.
  Yardstick(const Hypothesis& hypothesis, std::span<const int64_t> elements, std::span<const double> stored);

  /// The exact sum before its store.
  double centre(size_t i) const { return centre_[i]; }
  /// How far `sum` lies from what rounds to the observed value, in typical errors of the worst order; 0 inside.
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
