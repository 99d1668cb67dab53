// The one definition of a conforming computation: operands as they are, products and sums in float32 or wider, nothing coarser than
// float32 between them and a store that rounds to nearest.
//
// Callers need parts of it: sums for an auxiliary input, the numbers that it takes for a step. Each part is a Conformance below,
// beside the others, so that two of them differ by their fields here and by nothing else.
#pragma once

#include "harness/model/classification.h"
#include "harness/num/float_format.h"

namespace ulpscope {

/// How much each facet of a model may do. As it stands: the definition.
struct Conformance {
  enum class Operands {
    kAsTheyAre,
    kLessSubnormals,  ///< or with subnormal numbers taken as zero
    kNumbers,  ///< tensors as they are; numbers of the program in a format with the bits and the range of the result, or more
    kAny
  };
  enum class Products { kExact, kWide, kAny };
  enum class Sums {
    kWide,  ///< float32 or as many bits as the result has, whatever the unit and the rounding; exact ones are
    kNoUnits,    ///< float32 or wider, one addition after another or in parts, whatever the rounding
    kToNearest,  ///< the same, each addition to nearest, with as many bits as the result has
    kFloat32,    ///< float32, or exact where nothing is summed
    kFloat32Alone,
    kFloat32OrFloat64,  ///< one addition after another in either, or exact where nothing is summed
    kNarrow             ///< fewer bits than float32 has
  };
  enum class Before {
    kNothing,
    kFloat32,  ///< or float32: a wider sum that is rounded to it is one of float32's class
    kResult,   ///< or to as many bits as the result and float32 have
    kAny
  };
  enum class Store { kNearest, kNeighbour /** one of the two, to nearest or not */, kAny };
  enum class Steps { kUnrounded, kFloat32, kAny };

  Operands operands = Operands::kAsTheyAre;
  Products products = Products::kWide;
  Sums sums = Sums::kWide;
  Before before = Before::kFloat32;
  Store store = Store::kNearest;
  Steps steps = Steps::kUnrounded;  ///< intermediates that are rounded on the way
};

/// A value that is judged as one has sums to nearest, with products in one step. The program may round its intermediates.
inline constexpr Conformance kRequested{.products = Conformance::Products::kExact,
                                        .sums = Conformance::Sums::kToNearest,
                                        .before = Conformance::Before::kResult,
                                        .steps = Conformance::Steps::kAny};
/// A step is expected in the precision of a library that computes in float32. Block units truncate aligned products.
inline constexpr Conformance kWritten{.operands = Conformance::Operands::kNumbers,
                                      .sums = Conformance::Sums::kNoUnits,
                                      .steps = Conformance::Steps::kFloat32};
/// A probe of a matrix product allows more: hardware may drop subnormal operands, and sum in units.
inline constexpr Conformance kDotProduct{.operands = Conformance::Operands::kLessSubnormals};
/// Two values that differ can do so by their output rounding and the order of their sums alone.
inline constexpr Conformance kUpToStore{.store = Conformance::Store::kAny};
/// The case's own data and auxiliary inputs together decide sums and an output rounding, which may keep either neighbour.
inline constexpr Conformance kSumAndStore{.before = Conformance::Before::kNothing,
                                          .store = Conformance::Store::kNeighbour};
/// A contract that names float32 demands this.
inline constexpr Conformance kFloat32Throughout{.products = Conformance::Products::kExact,
                                                .sums = Conformance::Sums::kFloat32,
                                                .before = Conformance::Before::kNothing};
/// The rival that a reader looks for first: float32 sums, whatever their store.
inline constexpr Conformance kFloat32Sums{.products = Conformance::Products::kExact,
                                          .sums = Conformance::Sums::kFloat32Alone,
                                          .before = Conformance::Before::kNothing,
                                          .store = Conformance::Store::kAny};
/// No conforming one: a sum in a narrow format, and no other rounding between it and its store.
inline constexpr Conformance kNarrowSum{.operands = Conformance::Operands::kAny,
                                        .products = Conformance::Products::kAny,
                                        .sums = Conformance::Sums::kNarrow,
                                        .before = Conformance::Before::kNothing};

/// Models that are likely before any evidence: sums as programs request them, with whatever is rounded between their steps.
inline constexpr Conformance kNaturalSums{.products = Conformance::Products::kExact,
                                          .sums = Conformance::Sums::kFloat32OrFloat64,
                                          .before = Conformance::Before::kAny,
                                          .steps = Conformance::Steps::kAny};
/// A sum whose rounding, or whose store, may be another than to nearest.
inline constexpr Conformance kUpToRounding{.products = Conformance::Products::kAny,
                                           .sums = Conformance::Sums::kNoUnits,
                                           .before = Conformance::Before::kNothing,
                                           .store = Conformance::Store::kAny};

/// Whether `model` does no more than `what` allows, for a result in the format `result`.
bool IsConforming(const PrecisionModel& model, const FloatFormat& result, const Conformance& what = {});

}  // namespace ulpscope
