// ExactArithmetic: every step in exact real arithmetic, except the program's own casts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "harness/model/tensor.h"
#include "oracles/choices.h"
#include "oracles/exact/real.h"
#include "oracles/plan.h"

namespace ulpscope {

class ExactArithmetic {
 public:
  using Value = Real;
  static constexpr bool kNeedsSlack = false;
  static constexpr bool kSharesOperands = false;

  /// Divisions and roots are enclosed to `precision` bits.
  explicit ExactArithmetic(int64_t precision) : precision_(precision) {}

  /// Exact values of sums and products from a faster source, which gives none if it has no exact value.
  using Source = std::function<std::optional<Real>(int node, int64_t element)>;
  ExactArithmetic(int64_t precision, Source known) : precision_(precision), known_(std::move(known)) {}

  std::optional<Real> Known(const PlanNode&, int id, int64_t index, const Real*) const {
    return known_ ? known_(id, index) : std::nullopt;
  }
  std::optional<bool> Truth(const Real& condition) const { return TruthOf(condition); }
  Real Either(const Real& a, const Real& b) const { return ulpscope::Either(a, b); }
  std::optional<int64_t> Whole(const Real& number) const;
  Real Nowhere() const { return UndecidedValue(); }
  Real Count(const PlanNode& node, int64_t index) const;
  Real Input(const PlanNode& node, int id, const TensorData& data, int64_t index) const;
  Real Constant(const PlanNode& node) const;
  Real Elementwise(const PlanNode& node, int id, std::span<const Real> args,
                   std::span<const Real> slack) const;
  Real Contract(const PlanNode& node, int id, int64_t index, std::span<const Real> a, std::span<const Real> b,
                const Real* addend) const;
  Real Reduce(const PlanNode& node, int id, int64_t index, std::span<const Real> terms) const;

 private:
  int64_t precision_;
  Source known_;
};

}  // namespace ulpscope
