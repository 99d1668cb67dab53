// LanedArithmetic: a program in exact arithmetic, to about 2^-100 a step (functions: kFunctionError), several times at
// once: in each lane other values of the program are given, and the rest is computed.
//
// Hybrids of one program (harness/ledger/hybrid.h) differ in a few values each. Lanes share the costs of a value other
// than its arithmetic: the walk through the plan, the caches, the gathered operands.
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "harness/num/error_free.h"
#include "oracles/emulated.h"

namespace ulpscope {

/// One number in each lane, each a pair of doubles.
template <size_t kLanes>
struct Laned {
  std::array<double, kLanes> hi{}, lo{};

  TwoDoubles Of(size_t lane) const { return {.hi = hi[lane], .lo = lo[lane]}; }
  void Set(size_t lane, TwoDoubles value) {
    hi[lane] = value.hi;
    lo[lane] = value.lo;
  }
  static Laned Everywhere(TwoDoubles value) {
    Laned all;
    all.hi.fill(value.hi);
    all.lo.fill(value.lo);
    return all;
  }
};

/// A value that a step stores, and how each lane uses it.
struct StoredValue {
  const TensorData* data = nullptr;
  std::vector<bool> given = {};  ///< by lane: read as stored
  /// By lane, for values that are not given: the format that it is rounded to once; null: it is read unrounded.
  std::vector<const FloatFormat*> rounded = {};
  bool given_everywhere = false;
};

/// The distance of a step's stored result from its exact result on the same operands.
struct StepError {
  bool any = false;                    ///< more than exact functions err by
  double squares = 0, of_squares = 0;  ///< sums: of errors, and of stored values

  void Add(TwoDoubles exact, double stored) {
    if (SameValue(exact.hi, stored) && exact.lo == 0) return Count(0, stored);
    const double error = (stored - exact.hi) - exact.lo;
    // Functions err by 2^-72 of their value.
    any = any || !(std::fabs(error) <= 0x1p-68 * std::fabs(stored));
    Count(error, stored);
  }
  /// Root mean square of the errors, relative to that of the stored values; infinite if something is no number.
  double Relative() const {
    if (!std::isfinite(squares)) return squares;
    return of_squares > 0 ? std::sqrt(squares / of_squares) : any ? 1 : 0;
  }

 private:
  void Count(double error, double stored) {
    if (!std::isfinite(stored) && error == 0) return;
    squares += std::isnan(error) ? kInf : error * error;
    of_squares += stored * stored;
  }
};

template <size_t kLanes>
class LanedArithmetic {
 public:
  using Value = Laned<kLanes>;
  static constexpr bool kNeedsSlack = false;
  static constexpr bool kSharesOperands = false;

  /// `slots`: by node of the plan the index of its elements in `stored`, -1 for none. With `errors` everything is
  /// computed, from given operands, and the errors of each stored value are added there.
  LanedArithmetic(const Binding* nothing_rounds, std::span<const int> slots,
                  std::span<const StoredValue> stored, std::vector<StepError>* errors = nullptr)
      : scalar_(nothing_rounds, nullptr, nullptr), slots_(slots), stored_(stored), errors_(errors) {}

  std::optional<Value> Given(int id, int64_t index) const {
    const int slot = slots_[static_cast<size_t>(id)];
    if (slot < 0 || errors_ != nullptr) return std::nullopt;
    const StoredValue& stored = stored_[static_cast<size_t>(slot)];
    if (!stored.given_everywhere) return std::nullopt;
    return Value::Everywhere({.hi = stored.data->At(index), .lo = 0});
  }
  void Give(int id, int64_t index, Value* value) const {
    const int slot = slots_[static_cast<size_t>(id)];
    if (slot < 0) return;
    const StoredValue& stored = stored_[static_cast<size_t>(slot)];
    const double own = stored.data->At(index);
    if (errors_ != nullptr) (*errors_)[static_cast<size_t>(slot)].Add(value->Of(0), own);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      if (stored.given[lane])
        value->Set(lane, {.hi = own, .lo = 0});
      else if (const FloatFormat* format = stored.rounded[lane])
        value->Set(lane, {.hi = RoundTo(value->Of(lane), *format), .lo = 0});
    }
  }
  Value Select(const Value& condition, const Value& a, const Value& b) const {
    Value chosen;
    for (size_t lane = 0; lane < kLanes; ++lane)
      chosen.Set(lane, TruthOf(condition.Of(lane)).value_or(true) ? a.Of(lane) : b.Of(lane));
    return chosen;
  }

  std::optional<Value> Known(const PlanNode&, int, int64_t, const Value*) const { return std::nullopt; }
  std::optional<bool> Truth(const Value& condition) const {
    const std::optional<bool> first = TruthOf(condition.Of(0));
    for (size_t lane = 1; lane < kLanes; ++lane) {
      if (TruthOf(condition.Of(lane)) != first) return std::nullopt;
    }
    return first;
  }
  /// Nothing if lanes take different elements: a hybrid that is no number is left out.
  std::optional<int64_t> Whole(const Value& number) const {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      if (number.hi[lane] != number.hi[0]) return std::nullopt;
    }
    return scalar_.Whole(number.Of(0));
  }
  Value Nowhere() const { return Value::Everywhere(scalar_.Nowhere()); }
  Value Count(const PlanNode& node, int64_t index) const {
    return Value::Everywhere(scalar_.Count(node, index));
  }
  Value Input(const PlanNode&, int, const TensorData& data, int64_t index) const {
    return Value::Everywhere({.hi = data.At(index), .lo = 0});
  }
  Value Constant(const PlanNode& node) const { return Value::Everywhere(scalar_.Constant(node)); }

  Value Elementwise(const PlanNode& node, int id, std::span<const Value> args, std::span<const Value>) const {
    const FloatFormat* asked = AskedFormat(node);
    Value result;
    std::vector<TwoDoubles> operands(args.size());
    for (size_t lane = 0; lane < kLanes; ++lane) {
      for (size_t i = 0; i < args.size(); ++i) operands[i] = args[i].Of(lane);
      const TwoDoubles value = scalar_.Elementwise(node, id, operands, {});
      result.Set(lane, asked == nullptr ? value : TwoDoubles{.hi = RoundTo(value, *asked), .lo = 0});
    }
    return result;
  }

  Value Contract(const PlanNode& node, int, int64_t, std::span<const Value> a, std::span<const Value> b,
                 const Value* addend) const {
    const auto& [m, n, length, alpha, beta] = node.Get<Contraction>();
    Value sum;
    for (size_t k = 0; k < a.size(); ++k) AddProduct(a[k], b[k], &sum);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      TwoDoubles total = sum.Of(lane);
      if (!std::isfinite(total.hi)) {
        total = {};
        for (size_t k = 0; k < a.size(); ++k) total = Add(total, Multiply(a[k].Of(lane), b[k].Of(lane)));
      }
      if (alpha != 1) total = Multiply({.hi = alpha, .lo = 0}, total);
      if (addend != nullptr) total = Add(total, Multiply({.hi = beta, .lo = 0}, addend->Of(lane)));
      sum.Set(lane, total);
    }
    return sum;
  }

  Value Reduce(const PlanNode&, int, int64_t, std::span<const Value> terms) const {
    Value sum;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      TwoDoubles total;
      for (const Value& term : terms) total = Add(total, term.Of(lane));
      sum.Set(lane, total);
    }
    return sum;
  }

 private:
  /// No branch, and no std::fma if that is a call: lanes stay together. A NaN, and a product next to the end of the
  /// range, come out as NaN.
  static void AddProduct(const Value& a, const Value& b, Value* sum) {
    for (size_t l = 0; l < kLanes; ++l) {
      const double product = a.hi[l] * b.hi[l];
      const double tail = TailOf(a.hi[l], b.hi[l], product) + (a.hi[l] * b.lo[l] + a.lo[l] * b.hi[l]);
      const TwoDoubles high = TwoSum(sum->hi[l], product), low = TwoSum(sum->lo[l], tail);
      const TwoDoubles once = TwoSum(high.hi, high.lo + low.hi);
      const TwoDoubles twice = TwoSum(once.hi, once.lo + low.lo);
      sum->hi[l] = twice.hi;
      sum->lo[l] = twice.lo;
    }
  }
  /// The part of a product that rounding dropped (Dekker's TwoProduct, "A floating-point technique for
  /// extending the available precision", 1971).
  static double TailOf(double a, double b, double product) {
#ifdef FP_FAST_FMA
    return std::fma(a, b, -product);
#else
    constexpr double kSplit = 0x1p27 + 1;
    const double big_a = kSplit * a, big_b = kSplit * b;
    const double high_a = big_a - (big_a - a), high_b = big_b - (big_b - b);
    const double low_a = a - high_a, low_b = b - high_b;
    return ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b;
#endif
  }

  EmulatedArithmetic scalar_;
  std::span<const int> slots_;
  std::span<const StoredValue> stored_;
  std::vector<StepError>* errors_;
};

}  // namespace ulpscope
