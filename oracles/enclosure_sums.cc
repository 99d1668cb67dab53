// Interval evaluation of sums and products at a precision model.
#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/num/error_free.h"
#include "oracles/enclosure.h"
#include "oracles/interval_math.h"

namespace ulpscope {
namespace {

/// The sum of at most two terms that a narrow plain accumulator holds, the same in any order. Wide ones may take
/// products that were not rounded before.
std::optional<double> OneSum(const AccSpec& acc, const TermSum& sum) {
  if (sum.count < 0 || sum.count > 2 || !acc.binary() || acc.partial != nullptr || acc.combine != nullptr ||
      acc.format->precision >= Binary32().precision)
    return std::nullopt;
  for (const double term : {sum.first, sum.second}) {
    if (std::isnan(term) || RoundTo(term, *acc.format) != term) return std::nullopt;
  }
  return StoreIn(acc, TwoSum(sum.first, sum.second));
}

/// True if every order of `acc` gives the one number of `sum`. The alignment of a block unit is unknown, except that no
/// term has a bit below those of normal numbers.
bool IsExact(const AccSpec& acc, const TermSum& sum) {
  return sum.lo == sum.hi && (acc.block == 0 || sum.lowest >= Binary16().emin) &&
         SumsExactly(acc, sum.lowest, (std::fabs(sum.lo) + sum.magnitude) / 2);
}

}  // namespace

/// Terms that are certainly not finite: an infinity of one sign makes the sum that infinity, unless intermediate sums
/// of the others overflow to the opposite one.
struct BrokenTerms {
  bool up = false, down = false, none = false;  ///< an infinity of either sign, a NaN

  void See(Interval term) {
    if (HasNan(term))
      none = true;
    else if (term.lo == term.hi && std::isinf(term.lo))
      (term.lo > 0 ? up : down) = true;
  }
  bool any() const { return up || down || none; }
  /// `magnitude`: of the finite terms. A sum that is not finite has no magnitude of its own: NaN.
  TermSum Sum(double magnitude) const {
    const double kNan = std::numeric_limits<double>::quiet_NaN();
    return {.lo = none || (up && down) ? kNan : up ? kInf : -kInf, .hi = magnitude, .magnitude = kNan};
  }
};

/// The terms of a sum that are not zero for certain. Zeros are added exactly by every accumulator.
class Support {
 public:
  void See(Interval term) {
    if (term.lo == 0 && term.hi == 0) return;
    const bool is_point = term.lo == term.hi;
    const double point = is_point ? term.lo : std::numeric_limits<double>::quiet_NaN();
    lowest_ = std::min(lowest_, is_point ? ExponentOfLowestBit(point) : std::numeric_limits<int>::min());
    if (count_ < 2) terms_[static_cast<size_t>(count_)] = point;
    ++count_;
  }
  TermSum In(TermSum sum) const {
    sum.count = count_;
    sum.lowest = lowest_;
    const bool few = count_ <= 2;
    sum.first = few ? terms_[0] : std::numeric_limits<double>::quiet_NaN();
    sum.second = few ? terms_[1] : std::numeric_limits<double>::quiet_NaN();
    return sum;
  }

 private:
  int64_t count_ = 0;
  int lowest_ = kAnyMultiple;
  std::array<double, 2> terms_{};
};

/// A running sum in two doubles; its own error stays below (count + 2) 2^-104 times the sum of magnitudes.
class EnclosureArithmetic::PairSum {
 public:
  void Add(double value) {
    const TwoDoubles sum = TwoSum(hi_, value);
    hi_ = sum.hi;
    lo_ += sum.lo;
  }
  double Bound(double direction, double magnitude, double count) const {
    const TwoDoubles sum = TwoSum(hi_, lo_);
    if (!std::isfinite(sum.hi)) return std::isnan(sum.hi) ? direction * kInf : sum.hi;
    const bool exact = lo_ == 0;
    if (exact) return sum.hi;
    const double slack = magnitude * count * 0x1p-100;
    const double edge = sum.lo + direction * slack;
    if (edge == 0) return sum.hi;
    const double moved = sum.hi + edge;
    return direction > 0 ? std::max(Up(moved), sum.hi) : std::min(Down(moved), sum.hi);
  }

 private:
  double hi_ = 0, lo_ = 0;
};

std::optional<Interval> EnclosureArithmetic::Known(const PlanNode& node, int id, int64_t index,
                                                   const Interval* addend) {
  if (!cache_->fixed[static_cast<size_t>(id)]) return std::nullopt;
  const bool plain = cache_->raw[static_cast<size_t>(id)] && addend == nullptr;
  if (const auto quick = plain ? FromPlainSum(node, id, index) : std::nullopt) return quick;
  const auto sums = cache_->sums.find(Key(id));
  if (sums == cache_->sums.end()) return std::nullopt;
  const auto sum = sums->second.find(index);
  if (sum == sums->second.end()) return std::nullopt;
  const auto& in = binding_->in[static_cast<size_t>(id)];
  return Finish(node, id, sum->second, addend, std::max(in[0].passes, in[1].passes));
}

/// From a sum in plain binary64, if its error has no effect: the exact sum lies between two numbers that lead to the
/// same end of the interval.
std::optional<Interval> EnclosureArithmetic::FromPlainSum(const PlanNode& node, int id, int64_t index) {
  if (node.kind != NodeKind::kContract || binding_->acc.exact()) return std::nullopt;
  if (plain_.empty()) plain_.resize(cache_->raw.size());
  auto& plain = plain_[static_cast<size_t>(id)];
  if (!plain) plain = cache_->Plain(id, *binding_);
  const PlainSums::Sum* sum = plain->At(index);
  if (sum == nullptr) return std::nullopt;
  const auto& in = binding_->in[static_cast<size_t>(id)];
  const int passes = std::max(in[0].passes, in[1].passes);
  if (id == alone_ && node.alpha() == 1 && plain->IsExact(index, binding_->acc))
    return Stored(id, {.lo = sum->sum, .hi = sum->sum});
  const double error = plain->ErrorOf(sum->magnitude), low = sum->sum - error, high = sum->sum + error;
  const double magnitude = sum->magnitude * (1 + 0x1p-30), share = plain->relative() + 0x1p-50;
  const auto at = [&](double lo, double hi, double of) {
    return Finish(node, id, {.lo = lo, .hi = hi, .magnitude = of}, nullptr, passes);
  };
  const Interval most = at(low, high, magnitude * (1 + share));
  // Smaller magnitudes lie inside it.
  if (most.lo == most.hi && !most.special) return most;
  const Interval below = at(low, low, magnitude * (1 - share)),
                 above = at(high, high, magnitude * (1 - share));
  if (most.special || below.special || above.special) return std::nullopt;
  if (std::max(below.lo, above.lo) != most.lo || std::min(below.hi, above.hi) != most.hi) return std::nullopt;
  return most;
}

/// The products of the pieces of two split operands. Operands that are intervals keep their whole product, widened by a
/// bound of the left-out passes: the last pieces are below 2^-p of the operand each.
void EnclosureArithmetic::AddPasses(const std::array<RoundSpec, 2>& in, Interval a, Interval b, PairSum* low,
                                    PairSum* high, double* magnitude) const {
  if (a.lo == a.hi && b.lo == b.hi) {
    const Products products = ulpscope::Multiply(in[0], in[1], binding_->prod, a.lo, b.lo);
    for (int i = 0; i < products.count; ++i) {
      const TwoDoubles value = products.value[static_cast<size_t>(i)];
      for (PairSum* sum : {low, high}) {
        sum->Add(value.lo);
        sum->Add(value.hi);
      }
      *magnitude += std::fabs(value.hi);
    }
    return;
  }
  const Interval whole = Multiply(a, b);
  const double widen = Magnitude(whole) * 0x1p-6;
  low->Add(Down(whole.lo - widen));
  high->Add(Up(whole.hi + widen));
  *magnitude += 2 * Magnitude(whole);
}

Interval EnclosureArithmetic::Contract(const PlanNode& node, int id, int64_t index,
                                       std::span<const Interval> a, std::span<const Interval> b,
                                       const Interval* addend) {
  PairSum low, high;
  double magnitude = 0;
  BrokenTerms broken;
  const auto& in = binding_->in[static_cast<size_t>(id)];
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k].special || b[k].special) return kEverything;
    if (in[0].pieces > 1 || in[1].pieces > 1) {
      AddPasses(in, a[k], b[k], &low, &high, &magnitude);
      continue;
    }
    const Interval x = in[0].none() ? a[k] : Rounded(in[0], a[k]),
                   y = in[1].none() ? b[k] : Rounded(in[1], b[k]);
    Interval p;
    if (x.lo == x.hi && y.lo == y.hi && binding_->prod.format == nullptr &&
        std::fabs(x.lo * y.lo) > 0x1p-960 && std::isfinite(x.lo * y.lo)) {
      const TwoDoubles exact = TwoProduct(x.lo, y.lo);
      low.Add(exact.lo);
      high.Add(exact.lo);
      p = {.lo = exact.hi, .hi = exact.hi};
    } else {
      p = Rounded(binding_->prod, Multiply(x, y));
      if (IsNotFinite(x) || IsNotFinite(y) || IsNotFinite(p)) {
        broken.See(HasNan(x) ? x : HasNan(y) ? y : p);
        continue;
      }
    }
    low.Add(p.lo);
    high.Add(p.hi);
    magnitude += Magnitude(p);
  }
  magnitude *= 1 + 0x1p-30;
  const int passes = std::max(in[0].passes, in[1].passes);
  const double count = 3.0 * passes * static_cast<double>(a.size()) + 4;
  const TermSum sum = broken.any() ? broken.Sum(magnitude)
                                   : TermSum{.lo = low.Bound(-1, magnitude, count),
                                             .hi = high.Bound(1, magnitude, count),
                                             .magnitude = magnitude};
  if (cache_->fixed[static_cast<size_t>(id)]) cache_->sums[Key(id)][index] = sum;
  return Finish(node, id, sum, addend, passes);
}

Interval EnclosureArithmetic::Reduce(const PlanNode& node, int id, int64_t index,
                                     std::span<const Interval> terms) {
  PairSum low, high;
  double magnitude = 0;
  BrokenTerms broken;
  Support support;
  const RoundSpec& in = binding_->in[static_cast<size_t>(id)][0];
  for (const Interval& whole : terms) {
    if (whole.special) return kEverything;
    const Interval term = in.none() ? whole : Rounded(in, whole);
    if (IsNotFinite(term)) {
      broken.See(term);
      continue;
    }
    support.See(term);
    low.Add(term.lo);
    high.Add(term.hi);
    magnitude += Magnitude(term);
  }
  magnitude *= 1 + 0x1p-30;
  const double count = 3.0 * static_cast<double>(terms.size()) + 4;
  const TermSum sum = broken.any() ? broken.Sum(magnitude)
                                   : support.In({.lo = low.Bound(-1, magnitude, count),
                                                 .hi = high.Bound(1, magnitude, count),
                                                 .magnitude = magnitude});
  if (cache_->fixed[static_cast<size_t>(id)]) cache_->sums[Key(id)][index] = sum;
  return Finish(node, id, sum, nullptr, 1);
}

Interval EnclosureArithmetic::Finish(const PlanNode& node, int id, const TermSum& terms,
                                     const Interval* addend, int passes) const {
  TermSum sum = terms;
  int64_t count = (sum.count >= 0 ? sum.count : node.terms()) * passes;
  const double alpha = node.alpha();
  if (std::isnan(sum.magnitude)) {
    if (alpha == 0 || (addend != nullptr && !std::isfinite(Magnitude(*addend)))) return kEverything;
    const double others = sum.hi * std::fabs(alpha) + (addend == nullptr ? 0 : Magnitude(*addend));
    if (std::isinf(sum.lo) && !MayOverflow(binding_->acc, others, Relative(count)))
      return Stored(id, {.lo = sum.lo * alpha, .hi = sum.lo * alpha});
    return {.lo = sum.magnitude, .hi = sum.magnitude, .special = true};
  }
  if (addend != nullptr && addend->special) return kEverything;
  if (alpha != 1) {
    const Interval scaled =
        Multiply(Interval{.lo = alpha, .hi = alpha}, Interval{.lo = sum.lo, .hi = sum.hi});
    sum = {.lo = scaled.lo, .hi = scaled.hi, .magnitude = sum.magnitude * std::fabs(alpha) * (1 + 0x1p-50)};
    ++count;
  }
  if (addend != nullptr) {
    const double beta = node.Get<Contraction>().beta;
    const Interval scaled = Multiply(Interval{.lo = beta, .hi = beta}, *addend);
    sum = {.lo = AddDown(sum.lo, scaled.lo),
           .hi = AddUp(sum.hi, scaled.hi),
           .magnitude = sum.magnitude + Magnitude(scaled)};
    count += 2;
  }
  Interval value{.lo = sum.lo, .hi = sum.hi};
  const AccSpec& acc = binding_->acc;
  if (!acc.exact() && std::isfinite(sum.magnitude)) {
    // Zeros alone are summed exactly by every accumulator.
    const double radius = sum.magnitude == 0
                              ? 0
                              : (Relative(count) * sum.magnitude + AbsoluteBound(acc, count)) * (1 + 0x1p-40);
    const bool unscaled = addend == nullptr && alpha == 1 && passes == 1;
    if (const auto one = unscaled ? OneSum(acc, sum) : std::nullopt)
      value = {.lo = *one, .hi = *one};
    else if (!(unscaled && id == alone_ && IsExact(acc, sum)))
      value = {.lo = AddDown(value.lo, -radius), .hi = AddUp(value.hi, radius)};
    if (!HasNan(value))
      value = {.lo = StoreIn(acc, {.hi = value.lo, .lo = 0}), .hi = StoreIn(acc, {.hi = value.hi, .lo = 0})};
  } else if (!std::isfinite(sum.magnitude)) {
    value = kEverything;
  }
  value = Stored(id, value);
  // If all terms together exceed the format, some order overflows in an intermediate sum although the total does not:
  // to an infinity, and to a NaN if it meets the other one. A sum that is finite in the end never overflowed, except
  // with truncation: it stops at the largest number, and continues from there.
  if (!MayOverflow(acc, sum.magnitude, Relative(count))) return value;
  if (acc.rounding != Rounding::kNearestEven) return kEverything;
  value.special = true;
  return value;
}

double EnclosureArithmetic::Relative(int64_t count) const {
  if (count != counted_) {
    counted_ = count;
    bound_ = RelativeBound(binding_->acc, count);
  }
  return bound_;
}

bool MayOverflow(const AccSpec& acc, double magnitude, double relative) {
  if (acc.exact()) return false;
  double most = acc.format->max_finite;
  if (acc.partial != nullptr) most = std::min(acc.partial->max_finite, acc.combine->max_finite);
  return magnitude * (1 + relative) > most;
}

}  // namespace ulpscope
