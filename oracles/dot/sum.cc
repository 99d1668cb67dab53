// Accumulation orders over products, blocks and chunks.
#include "oracles/dot/sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "harness/num/error_free.h"
#include "oracles/dot/two_word_sums.h"

namespace ulpscope {
namespace {

/// Running sums over units in one accumulator.
class Units {
 public:
  Units(const AccSpec& acc, std::span<const SumTerm> terms)
      : acc_(acc), terms_(terms), size_(acc.block > 0 ? static_cast<size_t>(acc.block) : 1) {}

  size_t count() const { return (terms_.size() + size_ - 1) / size_; }

  double Take(double sum, size_t unit) const {
    if (acc_.block > 0) {
      const size_t first = unit * size_;
      return BlockStep(acc_, sum, terms_.subspan(first, std::min(size_, terms_.size() - first)));
    }
    const TwoDoubles& term = terms_[unit].value;
    // A zero term changes nothing but a first -0; skipping it keeps sparse sums cheap.
    return term.hi == 0 && sum != 0 ? sum : StepIn(acc_, sum, term);
  }

  double Range(size_t first, size_t last, double start) const {
    double sum = start;
    for (size_t unit = first; unit < last; ++unit) sum = Take(sum, unit);
    return sum;
  }

  double Pairwise(size_t first, size_t last) const {
    if (first == last) return 0;
    if (last - first == 1) return Take(0, first);
    const size_t middle = first + PairwiseSplit(last - first);
    return AddPartials(acc_, Pairwise(first, middle), Pairwise(middle, last));
  }

  double Lanes(size_t width) const {
    std::vector<double> lanes(std::min(width, count()), 0.0);
    for (size_t unit = 0; unit < count(); ++unit)
      lanes[unit % lanes.size()] = Take(lanes[unit % lanes.size()], unit);
    return Fold(std::move(lanes));
  }

  /// Lanes are folded in halves, as vector reductions do.
  double Fold(std::vector<double> partial) const {
    while (partial.size() > 1) {
      const size_t half = (partial.size() + 1) / 2;
      for (size_t i = 0; i + half < partial.size(); ++i)
        partial[i] = AddPartials(acc_, partial[i], partial[i + half]);
      partial.resize(half);
    }
    return partial.empty() ? 0 : partial[0];
  }

 private:
  const AccSpec& acc_;
  std::span<const SumTerm> terms_;
  size_t size_;
};

/// Exponent of a number that is finite and not zero.
int ExponentOf(double value) {
  const auto field = static_cast<int>(std::bit_cast<uint64_t>(value) >> 52 & 0x7ff);
  return field == 0 ? std::ilogb(value) : field - 1023;
}

/// Rounds towards zero to float32: the conversion to nearest, and one step back if that went up.
double CutToFloat(double value) {
  const auto nearest = static_cast<float>(value);
  const bool up = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  return up ? std::bit_cast<float>(std::bit_cast<uint32_t>(nearest) - 1) : nearest;
}

/// The sum of a block that the unit passes on. Beyond float32 it is infinite, also if sums are truncated: an H100 does
/// so (cuBLAS 13.1, bfloat16 and TF32).
double StoreBlock(const AccSpec& acc, double exact) {
  if (acc.bits() < acc.format->precision) exact = RoundTo(exact, FormatOfBits(acc.bits()), acc.rounding);
  if (acc.format == &Binary32() && std::fabs(exact) >= 0x1p128)
    return std::copysign(std::numeric_limits<double>::infinity(), exact);
  return acc.format == &Binary32() && acc.subnormals == Subnormals::kGradual &&
                 acc.rounding == Rounding::kTowardZero
             ? CutToFloat(exact)
             : RoundTo(exact, *acc.format, acc.rounding, acc.subnormals);
}

/// 2^exponent, of a normal number.
double PowerOf2(int exponent) { return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52); }

double InUnits(const AccSpec& acc, const SumOrder& order, std::span<const SumTerm> terms,
               const TwoDoubles* addend) {
  using Tree = SumOrder::Tree;
  const Units units(acc, terms);
  const bool first = addend != nullptr && !order.addend_last;
  const double start = first ? StoreIn(acc, *addend) : 0;
  bool started = false;
  double sum = 0;
  switch (order.tree) {
    case Tree::kSequential:
      sum = units.Range(0, units.count(), start);
      started = true;
      break;
    case Tree::kReversed:
      sum = start;
      for (size_t unit = units.count(); unit-- > 0;) sum = units.Take(sum, unit);
      started = true;
      break;
    case Tree::kOddFirstPairs:
      sum = start;
      for (size_t unit = 0; unit < units.count(); unit += 2) {
        if (unit + 1 < units.count()) sum = units.Take(sum, unit + 1);
        sum = units.Take(sum, unit);
      }
      started = true;
      break;
    case Tree::kLanes:
      sum = units.Lanes(static_cast<size_t>(order.width));
      break;
    case Tree::kPairwise:
      sum = units.Pairwise(0, units.count());
      break;
    case Tree::kBlocks:
      for (size_t unit = 0; unit < units.count(); unit += static_cast<size_t>(order.width)) {
        sum = AddPartials(
            acc, sum, units.Range(unit, std::min(unit + static_cast<size_t>(order.width), units.count()), 0));
      }
      break;
    case Tree::kHalves: {
      const size_t half = units.count() / 2;
      sum = AddPartials(acc, units.Range(0, half, 0), units.Range(half, units.count(), 0));
      break;
    }
  }
  if (addend != nullptr && !(first && started)) sum = AddPartials(acc, sum, StoreIn(acc, *addend));
  return sum;
}

/// The number of chunks of an order, and whether they are strided.
struct Chunks {
  size_t count = 2;
  bool strided = false, tree = false;
};

Chunks ChunksOf(const SumOrder& order) {
  switch (order.tree) {
    case SumOrder::Tree::kSequential:
      return {.count = 2};
    case SumOrder::Tree::kReversed:
      return {.count = 3};
    case SumOrder::Tree::kLanes:
      return {.count = static_cast<size_t>(order.width), .strided = order.width == 2};
    case SumOrder::Tree::kPairwise:
      return {.count = 4, .strided = false, .tree = true};
    case SumOrder::Tree::kBlocks:
      return {.count = order.width == 4 ? 5u : 7u};
    case SumOrder::Tree::kOddFirstPairs:
      return {.count = 6};
    case SumOrder::Tree::kHalves:
      return {.count = 8, .strided = false, .tree = true};
  }
  return {};
}

double InChunks(const AccSpec& acc, const SumOrder& order, std::span<const SumTerm> terms,
                const TwoDoubles* addend) {
  AccSpec inner;
  inner.format = &Binary32();
  inner.subnormals = acc.subnormals;
  Chunks chunks = ChunksOf(order);
  // A chunk for each product would be rounding the products: chunks hold two or more.
  chunks.count = std::clamp<size_t>(chunks.count, 1, std::max<size_t>(1, terms.size() / 2));
  std::vector<double> sums(chunks.count, 0.0);
  const size_t length = (terms.size() + chunks.count - 1) / chunks.count;
  for (size_t k = 0; k < terms.size(); ++k) {
    double& sum = sums[chunks.strided ? k % chunks.count : k / length];
    if (terms[k].value.hi != 0 || sum == 0) sum = StepIn(inner, sum, terms[k].value);
  }
  for (double& sum : sums) sum = RoundTo(sum, *acc.partial, Rounding::kNearestEven, acc.subnormals);
  if (order.tree == SumOrder::Tree::kReversed) std::ranges::reverse(sums);
  if (chunks.tree) {
    while (sums.size() > 1) {
      const size_t half = (sums.size() + 1) / 2;
      for (size_t i = 0; i + half < sums.size(); ++i) sums[i] = AddPartials(acc, sums[i], sums[i + half]);
      sums.resize(half);
    }
  }
  double sum = sums[0];
  for (size_t i = 1; i < sums.size(); ++i) sum = AddPartials(acc, sum, sums[i]);
  return addend == nullptr ? sum : AddPartials(acc, sum, RoundTo(*addend, *acc.combine));
}

}  // namespace

SumTerm TermOf(double a, double b) {
  if (a == 0 || b == 0 || !std::isfinite(a) || !std::isfinite(b))
    return {.value = {.hi = a * b, .lo = 0}, .exponent = -4000};
  // float32 numbers have products that one double holds.
  const bool whole =
      static_cast<double>(static_cast<float>(a)) == a && static_cast<double>(static_cast<float>(b)) == b;
  return {.value = whole ? TwoDoubles{.hi = a * b, .lo = 0} : TwoProduct(a, b),
          .exponent = ExponentOf(a) + ExponentOf(b)};
}

double BlockStep(const AccSpec& acc, double start, std::span<const SumTerm> terms) {
  constexpr int kNone = -4000;
  bool finite = std::isfinite(start);
  int largest = start == 0 || !finite ? kNone : std::max(ExponentOf(start), -126);
  // Zeros, infinities and NaNs by their bits: branches that nothing predicts cost more than all the rest.
  constexpr uint64_t kInfinity = uint64_t{0x7ff} << 52;
  uint64_t widest = 0;
  for (const SumTerm& term : terms) {
    const uint64_t size = std::bit_cast<uint64_t>(term.value.hi) & ~(uint64_t{1} << 63);
    widest = std::max(widest, size);
    largest = std::max(largest, size == 0 ? kNone : term.exponent);
  }
  finite = finite && widest < kInfinity;
  if (!finite) {
    double sum = start;
    for (const SumTerm& term : terms) sum += term.value.hi;
    return sum;
  }
  if (largest == kNone) return start;
  const int quantum = largest - acc.fraction;
  // Below 64 terms of at most 2^(F+2) quanta each: an exact integer sum.
  if (std::abs(quantum) < 1000) {
    // A power of two scales exactly, except for bits that are truncated to zero anyway.
    const double scale = PowerOf2(-quantum);
    auto quanta = static_cast<int64_t>(start * scale);
    for (const SumTerm& term : terms) {
      const double scaled = term.value.hi * scale;
      auto whole = static_cast<int64_t>(scaled);
      if (term.value.lo != 0 && static_cast<double>(whole) == scaled &&
          std::signbit(term.value.lo) != std::signbit(term.value.hi))
        whole -= whole < 0 ? -1 : 1;
      quanta += whole;
    }
    const double exact = static_cast<double>(quanta) * PowerOf2(quantum);
    return StoreBlock(acc, exact);
  }
  int64_t sum = static_cast<int64_t>(std::ldexp(start, -quantum));
  for (const SumTerm& term : terms) {
    if (term.value.hi == 0) continue;
    double high = std::trunc(std::ldexp(term.value.hi, -quantum));
    // A tail below a whole number of quanta moves the truncated value one further towards zero.
    if (term.value.lo != 0 && high == std::ldexp(term.value.hi, -quantum) &&
        std::signbit(term.value.lo) != std::signbit(term.value.hi))
      high -= std::copysign(1, high);
    sum += static_cast<int64_t>(high);
  }
  return StoreBlock(acc, std::ldexp(static_cast<double>(sum), quantum));
}

double AddPartials(const AccSpec& acc, double x, double y) {
  if (acc.block > 0) return RoundTo(TwoSum(x, y), *acc.format, Rounding::kNearestEven, acc.subnormals);
  if (acc.combine != nullptr)
    return RoundTo(TwoSum(x, y), *acc.combine, Rounding::kNearestEven, acc.subnormals);
  return StepIn(acc, x, {.hi = y, .lo = 0});
}

TwoDoubles SumInOrder(const AccSpec& acc, const SumOrder& order, std::span<const SumTerm> terms,
                      const TwoDoubles* addend) {
  if (acc.exact()) {
    TwoDoubles sum;
    for (const SumTerm& term : terms) sum = Add(sum, term.value);
    return addend == nullptr ? sum : Add(sum, *addend);
  }
  if (acc.in_two_words()) {
    const TwoWordRow& row = RowOf(acc.two_words);
    TwoWordSum sum;
    if (addend != nullptr && !order.addend_last) row.add(&sum, *addend);
    const bool backwards = order.tree == SumOrder::Tree::kReversed;
    for (size_t k = 0; k < terms.size(); ++k)
      row.add(&sum, terms[backwards ? terms.size() - 1 - k : k].value);
    if (addend != nullptr && order.addend_last) row.add(&sum, *addend);
    return {.hi = row.value(sum), .lo = 0};
  }
  return {
      .hi = acc.partial != nullptr ? InChunks(acc, order, terms, addend) : InUnits(acc, order, terms, addend),
      .lo = 0};
}

}  // namespace ulpscope
