// Elements as bit patterns.
#include "harness/casefile/element.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "harness/base/text.h"
#include "harness/casefile/number.h"

namespace ulpscope {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are stored least significant byte first");

Result<uint64_t> IntegerBits(Int128 value, DType dtype) {
  const int bits = dtype == DType::kBool ? 1 : static_cast<int>(8 * SizeOf(dtype));
  const bool is_unsigned = dtype == DType::kBool || dtype == DType::kUint8;
  const Int128 low = is_unsigned ? Int128{0} : -(Int128{1} << (bits - 1));
  const Int128 high = (Int128{1} << (is_unsigned ? bits : bits - 1)) - 1;
  if (value < low || value > high) return Fail("number out of range for " + std::string(Name(dtype)));
  return static_cast<uint64_t>(value) &
         (bits == 64 ? ~uint64_t{0} : (uint64_t{1} << (8 * SizeOf(dtype))) - 1);
}

}  // namespace

uint64_t BitsOf(double value, DType dtype) {
  std::array<std::byte, 8> bytes{};
  EncodeElement(value, dtype, bytes.data());
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  return bits;
}

Result<uint64_t> ElementBits(std::string_view text, DType dtype) {
  auto number = ULPSCOPE_TRY(ParseNumber(text));
  if (number.kind == ExactNumber::Kind::kBits) {
    const auto digits = static_cast<int>(2 * SizeOf(dtype));
    if (number.bit_digits != digits) {
      return Fail(Problem("wrong length of a bit pattern", "'" + std::string(text) + "'",
                          std::to_string(digits) + " hex digits for " + std::string(Name(dtype))));
    }
    if (dtype == DType::kBool && number.bits > 1) return Fail("a bool is bits:0x00 or bits:0x01");
    return number.bits;
  }
  if (const FloatFormat* format = FormatOf(dtype)) {
    auto value = ULPSCOPE_TRY(RoundNumber(number, *format));
    return BitsOf(value, dtype);
  }
  auto integer = ULPSCOPE_TRY(ParseInteger(text));
  return IntegerBits(integer, dtype);
}

Result<uint64_t> RoundedBits(Int128 numerator, int64_t divisor, int exponent, DType dtype) {
  const FloatFormat* format = FormatOf(dtype);
  if (format == nullptr) {
    if (divisor != 1 || exponent < 0 || exponent > 62)
      return Fail("a fraction, or out of range, for " + std::string(Name(dtype)));
    if (numerator >= (Int128{1} << 64) || numerator <= -(Int128{1} << 64))
      return Fail("number out of range for " + std::string(Name(dtype)));
    return IntegerBits(numerator * (Int128{1} << exponent), dtype);
  }
  CutDyadic value{.sign = numerator < 0 ? CutDyadic::Sign::kMinus : CutDyadic::Sign::kPlus};
  value.magnitude = static_cast<Uint128>(numerator < 0 ? -numerator : numerator);
  value.exponent = exponent;
  if (divisor != 1 && value.magnitude != 0) {
    // As many bits as there are: the quotient then has more than 62.
    const int shift = 126 - BitLength(value.magnitude);
    const Uint128 scaled = value.magnitude << shift;
    value.magnitude = scaled / static_cast<uint64_t>(divisor);
    value.tail =
        scaled % static_cast<uint64_t>(divisor) == 0 ? CutDyadic::Tail::kZero : CutDyadic::Tail::kNonZero;
    value.exponent -= shift;
  }
  const double rounded = RoundTo(Carry(value), *format);
  if (!std::isfinite(rounded))
    return Fail("the fill gives numbers too large for " + std::string(format->name));
  return BitsOf(rounded, dtype);
}

}  // namespace ulpscope
