// Rounding, ulp and codecs of the floating-point formats.
#include "harness/num/float_format.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "harness/base/check.h"

namespace ulpscope {
namespace {

double Pow2(int exponent) { return std::ldexp(1.0, exponent); }

/// Exponent of the binade of a finite non-zero value.
int BinadeOf(double value) { return std::ilogb(value); }

/// The value of the narrow integer type T at `bytes`.
template <class T>
T Load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class T>
void Store(T value, std::byte* bytes) {
  std::memcpy(bytes, &value, sizeof value);
}

double OverflowValue(double sign, const FloatFormat& format, Rounding rounding) {
  if (rounding == Rounding::kTowardZero) return std::copysign(format.max_finite, sign);
  switch (format.overflow) {
    case Overflow::kInfinity:
      return std::copysign(kInf, sign);
    case Overflow::kNan:
      return std::numeric_limits<double>::quiet_NaN();
    case Overflow::kSaturate:
      return std::copysign(format.max_finite, sign);
  }
  return 0;
}

/// 2^e for the exponents of the formats, without a call to ldexp on the hot path.
double Pow2Cached(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

/// Rounds |value| >= 2^emin to `format` on the bits of the carrier: the significand is cut to p bits, and a
/// carry runs into the exponent field as it should.
double RoundNormal(double value, const FloatFormat& format, Rounding rounding) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  const int shift = 53 - format.precision;
  const uint64_t half = uint64_t{1} << (shift - 1);
  if (rounding == Rounding::kNearestEven) bits += half - 1 + ((bits >> shift) & 1);
  if (rounding == Rounding::kNearestAway) bits += half;
  bits &= ~((uint64_t{1} << shift) - 1);
  const double result = std::bit_cast<double>(bits);
  return std::fabs(result) > format.max_finite ? OverflowValue(value, format, rounding) : result;
}

/// Small formats (p, exponent bits e): generic decode of an IEEE-like bit pattern.
double DecodeSmall(uint32_t bits, int exponent_bits, int mantissa_bits, bool finite_only) {
  const uint32_t sign = bits >> (exponent_bits + mantissa_bits);
  const int exponent = static_cast<int>((bits >> mantissa_bits) & ((1u << exponent_bits) - 1));
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double value;
  if (finite_only && exponent == (1 << exponent_bits) - 1 && mantissa == (1u << mantissa_bits) - 1) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (!finite_only && exponent == (1 << exponent_bits) - 1) {
    value = mantissa == 0 ? kInf : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<double>(mantissa), 1 - bias - mantissa_bits);
  } else {
    value =
        std::ldexp(static_cast<double>(mantissa | (1u << mantissa_bits)), exponent - bias - mantissa_bits);
  }
  return sign != 0 ? -value : value;
}

uint32_t EncodeSmall(double value, int exponent_bits, int mantissa_bits, bool finite_only) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint32_t sign = std::signbit(value) ? 1u << (exponent_bits + mantissa_bits) : 0u;
  const uint32_t all_ones = (1u << (exponent_bits + mantissa_bits)) - 1;
  if (std::isnan(value))
    return finite_only
               ? (sign | all_ones)
               : (sign | (((1u << exponent_bits) - 1) << mantissa_bits) | (1u << (mantissa_bits - 1)));
  if (std::isinf(value)) {
    ULPSCOPE_CHECK(!finite_only, "infinity has no encoding in a finite-only format");
    return sign | (((1u << exponent_bits) - 1) << mantissa_bits);
  }
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  const int exponent = BinadeOf(magnitude);
  if (exponent < 1 - bias)
    return sign | static_cast<uint32_t>(std::ldexp(magnitude, bias - 1 + mantissa_bits));
  const auto significand = static_cast<uint32_t>(std::ldexp(magnitude, mantissa_bits - exponent));
  return sign | (static_cast<uint32_t>(exponent + bias) << mantissa_bits) |
         (significand & ((1u << mantissa_bits) - 1));
}

}  // namespace

double FloatFormat::SmallestSubnormal() const { return Pow2(emin - precision + 1); }

const FloatFormat& Binary64() {
  static const FloatFormat format{.name = "float64",
                                  .precision = 53,
                                  .emin = -1022,
                                  .emax = 1023,
                                  .max_finite = std::numeric_limits<double>::max(),
                                  .overflow = Overflow::kInfinity};
  return format;
}
const FloatFormat& Binary32() {
  static const FloatFormat format{.name = "float32",
                                  .precision = 24,
                                  .emin = -126,
                                  .emax = 127,
                                  .max_finite = std::numeric_limits<float>::max(),
                                  .overflow = Overflow::kInfinity};
  return format;
}
const FloatFormat& Bfloat16() {
  static const FloatFormat format{.name = "bfloat16",
                                  .precision = 8,
                                  .emin = -126,
                                  .emax = 127,
                                  .max_finite = 0x1.FEp127,
                                  .overflow = Overflow::kInfinity};
  return format;
}
const FloatFormat& Binary16() {
  static const FloatFormat format{.name = "float16",
                                  .precision = 11,
                                  .emin = -14,
                                  .emax = 15,
                                  .max_finite = 65504,
                                  .overflow = Overflow::kInfinity};
  return format;
}
const FloatFormat& Tf32() {
  static const FloatFormat format{.name = "tf32",
                                  .precision = 11,
                                  .emin = -126,
                                  .emax = 127,
                                  .max_finite = 0x1.FFCp127,
                                  .overflow = Overflow::kInfinity};
  return format;
}
const FloatFormat& Float8E4m3fn() {
  static const FloatFormat format{.name = "float8_e4m3fn",
                                  .precision = 4,
                                  .emin = -6,
                                  .emax = 8,
                                  .max_finite = 448,
                                  .overflow = Overflow::kNan};
  return format;
}
const FloatFormat& Float8E5m2() {
  static const FloatFormat format{.name = "float8_e5m2",
                                  .precision = 3,
                                  .emin = -14,
                                  .emax = 15,
                                  .max_finite = 57344,
                                  .overflow = Overflow::kInfinity};
  return format;
}

const FloatFormat* FormatOf(DType dtype) { return FindFormat(Name(dtype)); }

const FloatFormat* FindFormat(std::string_view name) {
  for (const FloatFormat* format :
       {&Binary64(), &Binary32(), &Bfloat16(), &Binary16(), &Tf32(), &Float8E4m3fn(), &Float8E5m2()}) {
    if (format->name == name) return format;
  }
  return nullptr;
}

double RoundTo(TwoDoubles value, const FloatFormat& format, Rounding rounding, Subnormals subnormals) {
  double hi = value.hi;
  const double lo = value.lo;
  if (std::isnan(hi) || std::isinf(hi) || hi == 0) return hi;
  if (format.precision == 53) {
    if (rounding == Rounding::kTowardZero && lo != 0 && std::signbit(lo) != std::signbit(hi))
      hi = std::nextafter(hi, 0.0);
  } else if (lo != 0) {
    // Round to odd: the last bit of a 53-bit carrier remembers that something lies below it (Boldo and
    // Melquiond, 2008). A later rounding to p <= 51 bits then sees the same half-way relations as the exact
    // value.
    if ((std::bit_cast<uint64_t>(hi) & 1) == 0) {
      const bool away = std::signbit(lo) == std::signbit(hi);
      hi = std::nextafter(hi, away ? std::copysign(kInf, hi) : 0.0);
    }
  }
  if (format.precision == 53)
    return subnormals == Subnormals::kFlushed && std::fabs(hi) < Pow2(-1022) ? std::copysign(0.0, hi) : hi;
  const double magnitude = std::fabs(hi);
  if (magnitude >= Pow2Cached(format.emin)) return RoundNormal(hi, format, rounding);
  const int exponent = format.emin;
  const int quantum_exponent = exponent - format.precision + 1;
  // Scaling by a power of two is exact here: the scaled magnitude is below 2^53.
  const double scaled = std::ldexp(magnitude, -quantum_exponent);
  double whole = std::floor(scaled);
  const double rest = scaled - whole;
  switch (rounding) {
    case Rounding::kTowardZero:
      break;
    case Rounding::kNearestAway:
      if (rest >= 0.5) whole += 1;
      break;
    case Rounding::kNearestEven:
      if (rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2.0) != 0)) whole += 1;
      break;
  }
  const double result = std::ldexp(whole, quantum_exponent);
  if (subnormals == Subnormals::kFlushed && result < Pow2(format.emin)) return std::copysign(0.0, hi);
  return std::copysign(result, hi);
}

double RoundTo(double value, const FloatFormat& format, Rounding rounding, Subnormals subnormals) {
  return RoundTo(TwoDoubles{.hi = value, .lo = 0}, format, rounding, subnormals);
}

bool IsRepresentable(double value, const FloatFormat& format) {
  if (std::isnan(value)) return true;
  if (std::isinf(value)) return format.overflow == Overflow::kInfinity;
  return RoundTo(value, format) == value;
}

double Ulp(double value, const FloatFormat& format) {
  const double magnitude = std::fabs(value);
  if (!(magnitude >= Pow2(format.emin))) return format.SmallestSubnormal();
  if (std::isinf(magnitude)) return Pow2(format.emax - format.precision + 1);
  return Pow2(std::min(BinadeOf(magnitude), format.emax) - format.precision + 1);
}

double UlpError(double observed, TwoDoubles reference, const FloatFormat& format) {
  if (std::isnan(observed) || std::isnan(reference.hi))
    return std::isnan(observed) && std::isnan(reference.hi) ? 0 : kInf;
  if (std::isinf(observed) || std::isinf(reference.hi)) return observed == reference.hi ? 0 : kInf;
  return ((observed - reference.hi) - reference.lo) / Ulp(reference.hi, format);
}

int SignificantBits(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  int exponent;
  const double fraction = std::frexp(std::fabs(value), &exponent);
  const auto integer = static_cast<uint64_t>(std::ldexp(fraction, 53));
  return 53 - std::countr_zero(integer);
}

double DecodeElement(const std::byte* bytes, DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return Load<double>(bytes);
    case DType::kFloat32:
      return Load<float>(bytes);
    case DType::kBfloat16:
      return std::bit_cast<float>(static_cast<uint32_t>(Load<uint16_t>(bytes)) << 16);
    case DType::kFloat16:
      return DecodeSmall(Load<uint16_t>(bytes), 5, 10, false);
    case DType::kFloat8E4m3fn:
      return DecodeSmall(Load<uint8_t>(bytes), 4, 3, true);
    case DType::kFloat8E5m2:
      return DecodeSmall(Load<uint8_t>(bytes), 5, 2, false);
    case DType::kInt64:
      return static_cast<double>(Load<int64_t>(bytes));
    case DType::kInt32:
      return Load<int32_t>(bytes);
    case DType::kInt16:
      return Load<int16_t>(bytes);
    case DType::kInt8:
      return Load<int8_t>(bytes);
    case DType::kUint8:
      return Load<uint8_t>(bytes);
    case DType::kBool:
      return Load<uint8_t>(bytes) != 0 ? 1 : 0;
  }
  return 0;
}

void EncodeElement(double value, DType dtype, std::byte* bytes) {
  switch (dtype) {
    case DType::kFloat64:
      Store(value, bytes);
      return;
    case DType::kFloat32:
      Store(static_cast<float>(value), bytes);
      return;
    case DType::kBfloat16:
      Store(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16), bytes);
      return;
    case DType::kFloat16:
      Store(static_cast<uint16_t>(EncodeSmall(value, 5, 10, false)), bytes);
      return;
    case DType::kFloat8E4m3fn:
      Store(static_cast<uint8_t>(EncodeSmall(value, 4, 3, true)), bytes);
      return;
    case DType::kFloat8E5m2:
      Store(static_cast<uint8_t>(EncodeSmall(value, 5, 2, false)), bytes);
      return;
    case DType::kInt64:
      Store(static_cast<int64_t>(value), bytes);
      return;
    case DType::kInt32:
      Store(static_cast<int32_t>(value), bytes);
      return;
    case DType::kInt16:
      Store(static_cast<int16_t>(value), bytes);
      return;
    case DType::kInt8:
      Store(static_cast<int8_t>(value), bytes);
      return;
    case DType::kUint8:
      Store(static_cast<uint8_t>(value), bytes);
      return;
    case DType::kBool:
      Store(static_cast<uint8_t>(value != 0), bytes);
      return;
  }
}

std::string ShortestDecimal(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return std::string(buffer.data(), end);
}

std::string FormatNumber(double value) {
  if (!std::isfinite(value)) return ShortestDecimal(value);
  std::array<char, 40> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::hex).ptr;
  std::string hex(buffer.data(), end);
  hex.insert(hex.starts_with('-') ? 1 : 0, "0x");
  return hex + " (" + ShortestDecimal(value) + ")";
}

}  // namespace ulpscope
