// EmulatedArithmetic: what a precision model produces in one accumulation order, bit by bit.
//
// Values are carried as pairs of doubles, so that a step which its model does not round stays exact to about
// 2^-104; each rounding is done once, from the pair. One order holds for every reduction of the program.
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/model/tensor.h"
#include "oracles/binding.h"
#include "oracles/choices.h"
#include "oracles/dot/sum.h"

namespace ulpscope {

class EmulatedArithmetic {
 public:
  using Value = TwoDoubles;
  static constexpr bool kNeedsSlack = false;
  static constexpr bool kSharesOperands = true;
  static TwoDoubles FromDouble(double value) { return {.hi = value, .lo = 0}; }
  static double ToDouble(TwoDoubles value) { return value.hi; }
  EvaluationCache* cache() const { return cache_; }

  /// `order` null: sums are not rounded (the order-free centre).
  /// `inexact` 1, 2, ...: functions are off by up to 2^(inexact mod 4) units of the format that computes
  /// them, differently for each number; 0: functions are rounded once.
  EmulatedArithmetic(const Binding* binding, EvaluationCache* cache, const SumOrder* order, int unstored = -1,
                     int inexact = 0)
      : binding_(binding), cache_(cache), order_(order), unstored_(unstored), inexact_(inexact) {}

  /// The products of `a` and `b` as they enter a sum, by the pass of split operands; an empty `b` multiplies nothing.
  static std::vector<std::vector<SumTerm>> PassesOf(const std::array<RoundSpec, 2>& in, const RoundSpec& prod,
                                                    std::span<const double> a, std::span<const double> b);
  /// Their sum: each pass a sum of its own, added to one another.
  static TwoDoubles SumPasses(const AccSpec& acc, const SumOrder& order,
                              const std::vector<std::vector<SumTerm>>& passes, const TwoDoubles* addend);

  std::optional<bool> Truth(TwoDoubles condition) const { return TruthOf(condition); }
  TwoDoubles Either(TwoDoubles a, TwoDoubles) const { return a; }  // a condition is never open here
  std::optional<int64_t> Whole(TwoDoubles number) const {
    return std::isfinite(number.hi) ? std::optional(static_cast<int64_t>(number.hi)) : std::nullopt;
  }
  TwoDoubles Nowhere() const { return {.hi = std::nan(""), .lo = 0}; }
  TwoDoubles Count(const PlanNode& node, int64_t index) const;
  std::optional<TwoDoubles> Known(const PlanNode& node, int id, int64_t index,
                                  const TwoDoubles* addend) const;
  TwoDoubles Input(const PlanNode& node, int id, const TensorData& data, int64_t index) const;
  TwoDoubles Constant(const PlanNode& node) const;
  TwoDoubles Elementwise(const PlanNode& node, int id, std::span<const TwoDoubles> args,
                         std::span<const TwoDoubles> slack) const;
  TwoDoubles Contract(const PlanNode& node, int id, int64_t index, std::span<const TwoDoubles> a,
                      std::span<const TwoDoubles> b, const TwoDoubles* addend) const;
  TwoDoubles Reduce(const PlanNode& node, int id, int64_t index, std::span<const TwoDoubles> terms) const;

 private:
  /// The step itself: other forms that the op's author names, and its output rounding, come after it.
  TwoDoubles Computed(const PlanNode& node, std::span<const TwoDoubles> args) const;
  SumTerm OneProduct(const std::array<RoundSpec, 2>& in, TwoDoubles a, TwoDoubles b, bool aligned) const;
  const SumOrder& Order() const;
  /// A reduction's value from its terms.
  TwoDoubles SumOf(const PlanNode& node, int id, const Passes& passes, const TwoDoubles* addend) const;
  TwoDoubles Stored(int id, TwoDoubles value) const;
  AccSpec Acc() const { return order_ == nullptr ? AccSpec{} : binding_->acc; }

  const Binding* binding_;
  EvaluationCache* cache_;
  const SumOrder* order_;
  int unstored_;  ///< the node whose own roundings are left out
  int inexact_;
};

}  // namespace ulpscope
