// Orders of summation over lanes.
#include "oracles/dot/many_sums.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "oracles/dot/lanes.h"
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ulpscope {
namespace {

constexpr size_t kMostLanes = 16;

const LaneSteps* StepsHere() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has ? &kAvx2LaneSteps : nullptr;
#else
  return nullptr;
#endif
}

/// The processor rounds towards zero while this lives. Nothing but LaneSteps is computed meanwhile.
class TowardZero {
 public:
  explicit TowardZero(bool wanted) : wanted_(wanted) {
#if defined(__x86_64__)
    before_ = _mm_getcsr();
    if (wanted_) _mm_setcsr(before_ | _MM_ROUND_TOWARD_ZERO);
#endif
  }
  TowardZero(const TowardZero&) = delete;
  TowardZero& operator=(const TowardZero&) = delete;
  ~TowardZero() {
#if defined(__x86_64__)
    if (wanted_) _mm_setcsr(before_);
#endif
  }

 private:
  bool wanted_;
  unsigned before_ = 0;
};

using Lanes = std::array<float, kMostLanes>;

/// One group of lanes: the trees of SumOrder over them.
class LaneUnits {
 public:
  LaneUnits(const LaneSteps& steps, bool fused, const float* a, const float* b, size_t count, size_t lanes)
      : steps_(steps), fused_(fused), a_(a), b_(b), count_(count), lanes_(lanes) {}

  Lanes Sum(const SumOrder& order) const {
    using Tree = SumOrder::Tree;
    const auto last = static_cast<std::ptrdiff_t>(count_) - 1;
    switch (order.tree) {
      case Tree::kSequential:
        return Chain({.first = 0, .stride = 1, .count = count_});
      case Tree::kReversed:
        return Chain({.first = last, .stride = -1, .count = count_});
      case Tree::kOddFirstPairs:
        return Chain({.first = 0, .stride = 1, .count = count_, .pairs = true});
      case Tree::kLanes:
        return Strided(static_cast<size_t>(order.width));
      case Tree::kPairwise:
        return Pairwise(0, count_);
      case Tree::kBlocks: {
        Lanes sum{};
        const auto width = static_cast<size_t>(order.width);
        for (size_t unit = 0; unit < count_; unit += width)
          Add(&sum, Range(unit, std::min(unit + width, count_)));
        return sum;
      }
      case Tree::kHalves: {
        Lanes sum = Range(0, count_ / 2);
        Add(&sum, Range(count_ / 2, count_));
        return sum;
      }
    }
    return {};
  }

  void Add(Lanes* sum, const Lanes& more) const { steps_.add(sum->data(), more.data(), lanes_); }

 private:
  Lanes Chain(LaneChain chain) const {
    Lanes sum{};
    (fused_ ? steps_.fused : steps_.twice)(a_, b_, chain, lanes_, sum.data());
    return sum;
  }

  Lanes Range(size_t first, size_t last) const {
    return Chain({.first = static_cast<std::ptrdiff_t>(first), .stride = 1, .count = last - first});
  }

  Lanes Pairwise(size_t first, size_t last) const {
    if (last - first < 2) return Range(first, last);
    const size_t middle = first + PairwiseSplit(last - first);
    Lanes sum = Pairwise(first, middle);
    Add(&sum, Pairwise(middle, last));
    return sum;
  }

  /// Folded in halves, as vector reductions do.
  Lanes Strided(size_t width) const {
    std::vector<Lanes> partial(std::min(width, count_));
    for (size_t i = 0; i < partial.size(); ++i) {
      partial[i] = Chain({.first = static_cast<std::ptrdiff_t>(i),
                          .stride = static_cast<std::ptrdiff_t>(partial.size()),
                          .count = (count_ - i + partial.size() - 1) / partial.size()});
    }
    while (partial.size() > 1) {
      const size_t half = (partial.size() + 1) / 2;
      for (size_t i = 0; i + half < partial.size(); ++i) Add(&partial[i], partial[i + half]);
      partial.resize(half);
    }
    return partial.empty() ? Lanes{} : partial[0];
  }

  const LaneSteps& steps_;
  bool fused_;
  const float *a_, *b_;
  size_t count_, lanes_;
};

}  // namespace

bool ManySums::Can(const AccSpec& acc, const RoundSpec& prod) {
  const bool sums = acc.binary() && acc.format == &Binary32() && !acc.via_float32 &&
                    acc.subnormals == Subnormals::kGradual &&
                    (acc.rounding == Rounding::kNearestEven || acc.rounding == Rounding::kTowardZero);
  // The processor has one rounding for both steps.
  const bool products = prod.none() || (prod.format == &Binary32() && prod.rounding == acc.rounding &&
                                        prod.subnormals == Subnormals::kGradual && !prod.drops_operands());
  return sums && products && StepsHere() != nullptr;
}

ManySums::ManySums(size_t elements, size_t passes, size_t terms)
    : elements_(elements),
      passes_(passes),
      terms_(terms),
      lanes_(elements > 8 ? 16 : 8),
      groups_((elements + lanes_ - 1) / lanes_),
      a_(groups_ * passes * terms * lanes_),
      b_(a_.size()) {}

bool ManySums::Set(size_t element, size_t pass, size_t term, double a, double b) {
  const auto x = static_cast<float>(a), y = static_cast<float>(b);
  const auto same = [](float narrow, double wide) {
    return static_cast<double>(narrow) == wide || std::isnan(wide);
  };
  if (!same(x, a) || !same(y, b)) return false;
  const size_t at = ((element / lanes_ * passes_ + pass) * terms_ + term) * lanes_ + element % lanes_;
  a_[at] = x;
  b_[at] = y;
  return true;
}

std::vector<double> ManySums::Sum(const AccSpec& acc, const RoundSpec& prod, const SumOrder& order) const {
  std::vector<Lanes> sums(groups_);
  {
    const TowardZero rounding(acc.rounding == Rounding::kTowardZero);
    for (size_t group = 0; group < groups_; ++group) {
      for (size_t pass = 0; pass < passes_; ++pass) {
        const size_t at = (group * passes_ + pass) * terms_ * lanes_;
        const LaneUnits units(*StepsHere(), prod.none(), a_.data() + at, b_.data() + at, terms_, lanes_);
        const Lanes sum = units.Sum(order);
        if (pass == 0)
          sums[group] = sum;
        else
          units.Add(&sums[group], sum);
      }
    }
  }
  std::vector<double> values(elements_);
  for (size_t i = 0; i < elements_; ++i) values[i] = sums[i / lanes_][i % lanes_];
  return values;
}

}  // namespace ulpscope
