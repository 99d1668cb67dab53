// Compares references.
#include "oracles/fast/agree.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "oracles/exact/dyadic.h"

namespace ulpscope::fast {
namespace {

bool SameBits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

Dyadic Magnitude(const Dyadic& x) { return x.sign() < 0 ? Negate(x) : x; }

}  // namespace

bool Agree(const Reference& fast, const Reference& truth) {
  const bool both_nan = std::isnan(fast.hi) && std::isnan(truth.hi);
  if (!both_nan && !SameBits(fast.hi, truth.hi)) return false;
  if (fast.kind == ReferenceKind::kDomain || truth.kind == ReferenceKind::kDomain)
    return fast.kind == truth.kind;
  if (fast.kind == ReferenceKind::kUndecided || truth.kind == ReferenceKind::kUndecided) return false;
  if (fast.kind != ReferenceKind::kCertified)
    return SameBits(fast.lo, truth.lo) && fast.kind == truth.kind && SameBits(fast.err, truth.err);
  const Dyadic apart = Magnitude(Dyadic::From(fast.lo) - Dyadic::From(truth.lo));
  return Compare(apart, Dyadic::From(fast.err) + Dyadic::From(truth.err)) <= 0;
}

std::string Describe(const Reference& reference) {
  static constexpr std::array<const char*, 5> kKinds{"EXACT", "CERTIFIED", "WIDE", "DOMAIN", "UNDECIDED"};
  return "hi " + FormatNumber(reference.hi) + ", lo " + FormatNumber(reference.lo) + ", err " +
         FormatNumber(reference.err) + ", " + kKinds[static_cast<size_t>(reference.kind)];
}

}  // namespace ulpscope::fast
