// Renormalises and rounds.
#include "oracles/fast/expansion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "harness/base/check.h"
#include "harness/num/error_free.h"

namespace ulpscope::fast {
namespace {

constexpr size_t kMostParts = 12;

/// One sweep of TwoSum from the last part to the first: the sum stays, the leading part gains. True if
/// anything moved.
bool Sweep(double* x, size_t count) {
  bool moved = false;
  for (size_t i = count - 1; i > 0; --i) {
    const TwoDoubles two = TwoSum(x[i - 1], x[i]);
    moved |= two.hi != x[i - 1] || two.lo != x[i];
    x[i - 1] = two.hi;
    x[i] = two.lo;
  }
  return moved;
}

/// Drops zeros; the order stays.
size_t Compress(double* x, size_t count) { return static_cast<size_t>(std::remove(x, x + count, 0.0) - x); }

/// True if every real within `slack` of hi + lo rounds to hi. The slack is doubled because lo +- 2 slack
/// rounds itself: by at most 2^-53 |lo|, which is why the slack is never less. A tie with something below it
/// is thus never decided here.
bool Decided(double hi, double lo, double slack) {
  slack = std::max(slack, std::fabs(lo) * 0x1p-53);
  return hi + (lo + 2 * slack) == hi && hi + (lo - 2 * slack) == hi;
}

}  // namespace

std::optional<Reference> RoundSum(std::span<const double> parts, double err) {
  ULPSCOPE_CHECK(parts.size() <= kMostParts, "too many parts for an expansion");
  std::array<double, kMostParts> x{};
  std::copy(parts.begin(), parts.end(), x.begin());
  size_t count = Compress(x.data(), parts.size());
  for (int sweeps = 0; count > 1 && Sweep(x.data(), count); ++sweeps) {
    count = Compress(x.data(), count);
    if (sweeps > 40) return std::nullopt;
  }
  count = Compress(x.data(), count);
  const double hi = count > 0 ? x[0] : 0.0, lo = count > 1 ? x[1] : 0.0;
  const bool exact = err == 0;
  if (count <= 2 && exact) return Reference{.hi = hi, .lo = lo, .err = 0, .kind = ReferenceKind::kExact};
  // Settled: each part is at most half an ulp of the one before. So the parts from the third on sum to less
  // than twice the third, and lie within an ulp of lo.
  const double tail = count > 2 ? 2 * std::fabs(x[2]) : 0.0;
  if (!Decided(hi, lo, tail + err)) return std::nullopt;
  if (!exact)
    return Reference{.hi = hi, .lo = lo, .err = 2 * (tail + err), .kind = ReferenceKind::kCertified};
  const double rest = count > 3 ? 2 * std::fabs(x[3]) : 0.0;
  if (!Decided(lo, x[2], rest)) return std::nullopt;
  const double width = std::max(std::fabs(lo) * 0x1p-53, std::numeric_limits<double>::denorm_min());
  return Reference{.hi = hi, .lo = lo, .err = width, .kind = ReferenceKind::kWide};
}

}  // namespace ulpscope::fast
