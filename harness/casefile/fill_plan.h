// FillPlan: a fill with its parameters read, checked and converted to integers; generate.cc evaluates it per element.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/base/result.h"
#include "harness/casefile/fill_data.h"
#include "harness/model/case.h"

namespace ulpscope {

struct FillPlan {
  enum class Kind {
    kAffine,  ///< (base * 2^shift + step * n) / divisor * 2^(exponent - shift), n from `source`
    kBits,    ///< the element `bits` everywhere
    kValues,  ///< `values`, row-major
    kWide,    ///< wide_exponent
    kSubnormal,
    kTies,
  };
  enum class Source { kIndex, kUniform, kPositive, kNormal, kRange, kLattice };

  Kind kind = Kind::kBits;
  Source source = Source::kIndex;
  int64_t base = 0, step = 0;  ///< below 2^62 in magnitude
  int64_t divisor = 1;         ///< odd, below 2^62
  int shift = 0;               ///< fraction bits of n
  int exponent = 0;
  int64_t low = 0, high = 0;          ///< kRange: bounds of n; kWide: of the exponent
  int64_t mul = 0, add = 0, mod = 1;  ///< kLattice
  uint64_t bits = 0;
  std::vector<uint64_t> values;         ///< bit patterns
  const FloatFormat* narrow = nullptr;  ///< kTies
};

/// Fraction bits of the integers that represent uniform and normal deviates.
inline constexpr int kUniformBits = 53;
inline constexpr int kNormalBits = 60;

/// Reads and checks spec.fill. Reading the elements of `values` is left out for WithValues::kNo.
Result<FillPlan> PlanFill(const TensorSpec& spec, WithValues with_values);

}  // namespace ulpscope
