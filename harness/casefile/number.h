// Numbers as text, read exactly: decimal, hex float, fraction, infinities, NaN and bit patterns.
//
// A number of a case file is rounded once, from its exact value into the format of the tensor that it fills. Going through
// binary64 first would round twice (0.1 to bfloat16 is the same either way, 1 + 2^-8 + 2^-60 is not), and what the C and C++
// libraries read depends on the locale. So: exact numerator and denominator here, one division, one rounding.
//
// Accepted: 12  -0.5  1e-5  2.5e3  0x1.8p+1  0x1p-149  1/3  -2/7  inf  -inf  nan  bits:0x3f80 (bits only for tensor elements).
// Refused, with the reason: 010 (octal for some readers), 1. and .5, +1, 1_000, 0x10, 1:30, yes/no/on/off.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "harness/base/result.h"
#include "harness/casefile/big_uint.h"
#include "harness/num/float_format.h"

namespace ulpscope {

/// (negative ? -1 : 1) * numerator / denominator * 2^exponent2, or a special value, or a bit pattern.
struct ExactNumber {
  enum class Kind { kFinite, kInfinite, kNan, kBits };
  enum class Syntax { kInteger, kOther };
  Kind kind = Kind::kFinite;
  Syntax syntax = Syntax::kOther;
  bool negative = false;
  BigUint numerator;
  BigUint denominator{1};
  int exponent2 = 0;
  uint64_t bits = 0;
  int bit_digits = 0;  ///< hex digits of the pattern
};

/// Errors carry no place; the caller knows it.
Result<ExactNumber> ParseNumber(std::string_view text);

/// True if `text` begins like a number or is one of its words, so that a reader would take it for a number.
bool LooksLikeNumber(std::string_view text);

/// Words that YAML readers disagree about: yes no on off True FALSE null ~ .inf .NaN ... (not true and
/// false).
bool IsAmbiguousWord(std::string_view text);

/// -?(0|[1-9][0-9]*) inside int64.
Result<int64_t> ParseInteger(std::string_view text);

/// An exact value truncated to 128 bits: (magnitude + tail) * 2^exponent with 0 <= tail < 1.
struct CutDyadic {
  enum class Sign { kPlus, kMinus } sign = Sign::kPlus;
  enum class Tail { kZero, kNonZero } tail = Tail::kZero;  ///< kNonZero needs a magnitude of at least 56 bits
  Uint128 magnitude = 0;                                   ///< below 2^126
  int exponent = 0;
};

/// The value as hi + lo: hi correctly rounded to binary64 (its subnormals included), lo with the sign of the
/// rest. Input for RoundTo(TwoDoubles, format), which then rounds the exact value once.
TwoDoubles Carry(const CutDyadic& value);

/// Rounds a finite, infinite or NaN number once into `format`, to nearest even. Fails when it overflows, or
/// when the format has no infinity.
Result<double> RoundNumber(const ExactNumber& number, const FloatFormat& format);

/// The exact value as a quotient, truncated to at least 64 bits.
CutDyadic CutToDyadic(const ExactNumber& number);

/// A number small enough for fixed-point work: numerator / denominator * 2^exponent, denominator odd, both
/// below 2^62.
struct SmallFraction {
  int64_t numerator = 0;
  int64_t denominator = 1;
  int exponent = 0;
};
Result<SmallFraction> ToSmallFraction(const ExactNumber& number);

}  // namespace ulpscope
