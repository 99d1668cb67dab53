// Facet by facet, what a model may do and still conform.
#include "harness/model/conforming.h"

#include <algorithm>
#include <string_view>

namespace ulpscope {
namespace {

/// Operands that are numbers of the program are called so.
constexpr std::string_view kScalar = "scalar.";

int LeastBits(const FloatFormat& result) { return std::max(result.precision, Binary32().precision); }

bool ReadsAsAllowed(const PrecisionModel& model, const FloatFormat& result, Conformance::Operands what) {
  using enum Conformance::Operands;
  return std::ranges::all_of(model.in, [&](const auto& operand) {
    const auto& [name, in] = operand;
    const bool holds =
        in.format == nullptr || (in.bits() >= result.precision && in.format->emin <= result.emin);
    return what == kAny || in.none() || (what == kLessSubnormals && in.format == nullptr) ||
           (what == kNumbers && name.starts_with(kScalar) && holds);
  });
}

bool MultipliesAsAllowed(const RoundSpec& prod, const FloatFormat& result, Conformance::Products what) {
  using enum Conformance::Products;
  return prod.none() || what == kAny ||
         (what == kWide && !prod.to_bits() && prod.bits() >= LeastBits(result));
}

bool SumsAsAllowed(const AccSpec& acc, const FloatFormat& result, Conformance::Sums what) {
  using enum Conformance::Sums;
  switch (what) {
    case kWide:
      return acc.bits() >= LeastBits(result);
    case kNoUnits:
      return acc.wide() && acc.block == 0;
    case kToNearest:
      return acc.exact() ||
             (acc.block == 0 && acc.rounding == Rounding::kNearestEven && acc.bits() >= LeastBits(result));
    case kFloat32:
      return acc.exact() || acc == SumsIn(Binary32());
    case kFloat32Alone:
      return acc == SumsIn(Binary32());
    case kFloat32OrFloat64:
      return acc.exact() || acc == SumsIn(Binary32()) || acc == SumsIn(Binary64());
    case kNarrow:
      return !acc.wide();
  }
  return false;
}

bool RoundsBeforeAsAllowed(const RoundSpec& mid, const FloatFormat& result, Conformance::Before what) {
  using enum Conformance::Before;
  return mid.none() || what == kAny || (what == kFloat32 && mid.rounds_to(Binary32())) ||
         (what == kResult && mid.bits() >= LeastBits(result));
}

bool StoresAsAllowed(const RoundSpec& out, Conformance::Store what) {
  using enum Conformance::Store;
  return what == kAny || out.to_nearest() || (what == kNeighbour && out.rounding == Rounding::kNearestEven);
}

}  // namespace

bool IsConforming(const PrecisionModel& model, const FloatFormat& result, const Conformance& what) {
  const bool steps = std::ranges::all_of(model.cuts, [&](const auto& cut) {
    return what.steps == Conformance::Steps::kAny ||
           (what.steps == Conformance::Steps::kFloat32 && cut.second.none_or(Binary32()));
  });
  return steps && ReadsAsAllowed(model, result, what.operands) &&
         MultipliesAsAllowed(model.prod, result, what.products) &&
         SumsAsAllowed(model.acc, result, what.sums) &&
         RoundsBeforeAsAllowed(model.mid, result, what.before) && StoresAsAllowed(model.out, what.store);
}

}  // namespace ulpscope
