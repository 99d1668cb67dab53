// Sums in two words.
#include "oracles/dot/two_word_sums.h"

#include <array>
#include <cmath>

#include "harness/num/error_free.h"
#include "oracles/growth.h"

namespace ulpscope {
namespace {

/// Sum2 and Dot2 of Ogita, Rump, Oishi, "Accurate sum and dot product", SISC 2005, with both words in float32.
void AddSum2(TwoWordSum* sum, TwoDoubles term) {
  const double high = RoundTo(term, Binary32());
  // The product's own error is the second word of TwoProduct in float32.
  const TwoDoubles rest = AddExactly(-high, term);
  const double low = std::isfinite(high) ? RoundTo(rest, Binary32()) : 0;
  const double next = RoundTo(sum->high + high, Binary32());
  const double error =
      std::isfinite(next) ? TwoSum(sum->high, high).hi - next + TwoSum(sum->high, high).lo : 0;
  sum->high = next;
  sum->low = RoundTo(sum->low + RoundTo(error + low, Binary32()), Binary32());
}

/// Both words, rounded to float32 once.
double ValueOfBoth(const TwoWordSum& sum) { return RoundTo(TwoSum(sum.high, sum.low), Binary32()); }

double BoundOfSum2(double terms) { return 0x1p-24 + Growth(0x1p-24, terms) * Growth(0x1p-24, terms); }

constexpr std::array kTwoWordRows{
    TwoWordRow{.kind = TwoWords::kSum2, .add = AddSum2, .value = ValueOfBoth, .relative_bound = BoundOfSum2},
};

}  // namespace

const TwoWordRow& RowOf(TwoWords kind) {
  static_assert(kTwoWordRows.size() == kTwoWordKinds, "each kind of sum in two words has its row");
  return kTwoWordRows[static_cast<size_t>(kind) - 1];
}

}  // namespace ulpscope
