// EnclosureArithmetic: everything that a precision model can produce, in any accumulation order, as intervals
// of doubles.
//
// Directed rounding is done by error-free transformations: an endpoint moves outwards by one double only when
// the operation really rounded. A reduction's interval is the exact sum of its (rounded) products plus or
// minus the accumulator's bound, rounded to the accumulator's format; every later rounding is monotone, so it
// maps endpoints to endpoints.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "harness/model/oracle.h"
#include "harness/model/tensor.h"
#include "oracles/binding.h"
#include "oracles/choices.h"

namespace ulpscope {

/// True if numbers whose magnitudes sum up to `magnitude` can overflow `acc` in some order; `relative` is the
/// RelativeBound() for their count.
bool MayOverflow(const AccSpec& acc, double magnitude, double relative);

class EnclosureArithmetic {
 public:
  using Value = Interval;
  static constexpr bool kNeedsSlack = true;
  static constexpr bool kSharesOperands = true;
  static Interval FromDouble(double value) { return {.lo = value, .hi = value}; }
  static double ToDouble(Interval value) { return value.lo; }
  EvaluationCache* cache() const { return cache_; }

  /// `alone`: a sum that nothing is folded into, so that its terms are known bit by bit; -1 for none. Terms of other
  /// sums may be scaled by later steps, or be part of a larger sum: their bounds allow for that.
  EnclosureArithmetic(const Binding* binding, EvaluationCache* cache, int alone = -1)
      : binding_(binding), cache_(cache), alone_(alone) {}

  std::optional<bool> Truth(Interval condition) const { return TruthOf(condition); }
  Interval Either(Interval a, Interval b) const { return ulpscope::Either(a, b); }
  std::optional<int64_t> Whole(Interval number) const {
    return number.special || !(number.lo == number.hi) ? std::nullopt
                                                       : std::optional(static_cast<int64_t>(number.lo));
  }
  Interval Nowhere() const;
  Interval Count(const PlanNode& node, int64_t index) const;
  /// A reduction whose sum is in the shared cache needs no operands.
  std::optional<Interval> Known(const PlanNode& node, int id, int64_t index, const Interval* addend);
  Interval Input(const PlanNode& node, int id, const TensorData& data, int64_t index) const;
  Interval Constant(const PlanNode& node) const;
  Interval Elementwise(const PlanNode& node, int id, std::span<const Interval> args,
                       std::span<const Interval> slack) const;
  Interval Contract(const PlanNode& node, int id, int64_t index, std::span<const Interval> a,
                    std::span<const Interval> b, const Interval* addend);
  Interval Reduce(const PlanNode& node, int id, int64_t index, std::span<const Interval> terms);

 private:
  class PairSum;
  /// `passes`: products that each multiplication became.
  Interval Finish(const PlanNode& node, int id, const TermSum& sum, const Interval* addend, int passes) const;
  std::optional<Interval> FromPlainSum(const PlanNode& node, int id, int64_t index);
  /// RelativeBound() of the accumulator.
  double Relative(int64_t count) const;
  void AddPasses(const std::array<RoundSpec, 2>& in, Interval a, Interval b, PairSum* low, PairSum* high,
                 double* magnitude) const;
  Interval Stored(int id, Interval value) const;
  Interval Product(std::span<const Interval> factors) const;
  std::string Key(int id) const { return std::to_string(id) + "|" + binding_->term_key; }

  const Binding* binding_;
  EvaluationCache* cache_;
  int alone_;
  std::vector<std::shared_ptr<PlainSums>> plain_;  ///< by node, after its first use
  mutable int64_t counted_ = -1;                   ///< the count of bound_
  mutable double bound_ = 0;
};

}  // namespace ulpscope
