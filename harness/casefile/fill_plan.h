// FillPlan: a fill with its parameters read, checked and brought to integers; what generate.cc then evaluates
// per element.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/base/result.h"
#include "harness/casefile/big_uint.h"
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

/// Fraction bits of the integers that stand for uniform and normal deviates.
inline constexpr int kUniformBits = 53;
inline constexpr int kNormalBits = 60;

/// Reads and checks spec.fill. Reading the elements of `values` is left out for WithValues::kNo.
enum class WithValues { kNo, kYes };
Result<FillPlan> PlanFill(const TensorSpec& spec, WithValues with_values);

/// The bit pattern of one element from its text.
Result<uint64_t> ElementBits(std::string_view text, DType dtype);

/// numerator / divisor * 2^exponent rounded once into the format of `dtype`; for integer dtypes the integer
/// itself. Fails when it does not fit. |numerator| < 2^126, 0 < divisor < 2^62.
Result<uint64_t> RoundedBits(Int128 numerator, int64_t divisor, int exponent, DType dtype);

/// The bits of a value that is representable in the floating `dtype`.
uint64_t BitsOf(double value, DType dtype);

}  // namespace ulpscope
