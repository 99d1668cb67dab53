// Elements of a tensor as bit patterns, from their text or from exact numbers; every rounding happens once.
#pragma once

#include <cstdint>
#include <string_view>

#include "harness/base/result.h"
#include "harness/casefile/big_uint.h"
#include "harness/num/dtype.h"

namespace ulpscope {

/// The bit pattern of one element from its text.
Result<uint64_t> ElementBits(std::string_view text, DType dtype);

/// numerator / divisor * 2^exponent rounded once into the format of `dtype`; for integer dtypes the integer
/// itself. Fails when it does not fit. |numerator| < 2^126, 0 < divisor < 2^62.
Result<uint64_t> RoundedBits(Int128 numerator, int64_t divisor, int exponent, DType dtype);

/// The bits of a value that is representable in the floating `dtype`.
uint64_t BitsOf(double value, DType dtype);

}  // namespace ulpscope
