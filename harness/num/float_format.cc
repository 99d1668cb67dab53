// Rounding, ulp and codecs of the floating-point formats.
#include "harness/num/float_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/base/check.h"
#include "harness/base/find.h"

namespace ulpscope {
namespace {

double PowerOfTwo(int exponent) { return std::ldexp(1.0, exponent); }

/// Exponent of the binade of a finite non-zero value.
int BinadeOf(double value) { return std::ilogb(value); }

double OverflowValue(double sign, const FloatFormat& format, Rounding rounding) {
  if (rounding == Rounding::kTowardZero) return std::copysign(format.max_finite, sign);
  return format.specials == Specials::kIeee ? std::copysign(kInf, sign)
                                            : std::numeric_limits<double>::quiet_NaN();
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
  const uint64_t lost = (uint64_t{1} << shift) - 1;
  if (rounding == Rounding::kToOdd && (bits & lost) != 0) bits |= lost + 1;
  bits &= ~lost;
  const double result = std::bit_cast<double>(bits);
  return std::fabs(result) > format.max_finite ? OverflowValue(value, format, rounding) : result;
}

/// One row each: name, precision, emin, emax, largest finite value, specials.
constexpr std::array kFormats{
    FloatFormat{"float64", 53, -1022, 1023, std::numeric_limits<double>::max()},
    FloatFormat{"float32", 24, -126, 127, std::numeric_limits<float>::max()},
    FloatFormat{"bfloat16", 8, -126, 127, 0x1.FEp127},
    FloatFormat{"float16", 11, -14, 15, 65504},
    FloatFormat{"tf32", 11, -126, 127, 0x1.FFCp127},
    FloatFormat{"float8_e4m3fn", 4, -6, 8, 448, Specials::kLastIsNan},
    FloatFormat{"float8_e5m2", 3, -14, 15, 57344},
    FloatFormat{"float8_e4m3fnuz", 4, -7, 7, 240, Specials::kMinusZeroIsNan},
};

struct RoundingRow {
  Rounding rounding;
  std::string_view word;
  std::string_view about;  ///< for the legend of a matrix
};
constexpr std::array kRoundings{RoundingRow{Rounding::kNearestEven, "rne", ""},
                                RoundingRow{Rounding::kTowardZero, "rz", "rounded toward zero"},
                                RoundingRow{Rounding::kNearestAway, "rna", "ties away from zero"},
                                RoundingRow{Rounding::kToOdd, "odd", "rounded to odd"}};

const RoundingRow& RowOf(Rounding rounding) {
  return *std::ranges::find(kRoundings, rounding, &RoundingRow::rounding);
}

}  // namespace

double FloatFormat::SmallestSubnormal() const { return PowerOfTwo(emin - precision + 1); }

const FloatFormat& Binary64() { return kFormats[0]; }
const FloatFormat& Binary32() { return kFormats[1]; }
const FloatFormat& Bfloat16() { return kFormats[2]; }
const FloatFormat& Binary16() { return kFormats[3]; }
const FloatFormat& Tf32() { return kFormats[4]; }
const FloatFormat& Float8E4m3fn() { return kFormats[5]; }
const FloatFormat& Float8E5m2() { return kFormats[6]; }

const FloatFormat* FindFormat(std::string_view name) {
  const auto row =
      std::ranges::find_if(kFormats, [&](const FloatFormat& format) { return format.name == name; });
  return row == kFormats.end() ? nullptr : &*row;
}

const FloatFormat* FormatOf(DType dtype) {
  static const auto formats = [] {
    std::vector<const FloatFormat*> all;
    for (const DType each : AllDTypes()) all.push_back(FindFormat(Name(each)));
    return all;
  }();
  return formats[static_cast<size_t>(dtype)];
}

const std::vector<const FloatFormat*>& AllFormats() {
  static const auto formats = [] {
    std::vector<const FloatFormat*> all;
    for (const FloatFormat& format : kFormats) all.push_back(&format);
    return all;
  }();
  return formats;
}

const FloatFormat& FormatOfBits(int bits) {
  struct Named {
    std::string name;
    FloatFormat format;
  };
  static const auto formats = [] {
    std::vector<Named> all(53);
    for (int p = 2; p < 53; ++p) {
      auto& [name, format] = all[static_cast<size_t>(p)];
      name = "p" + std::to_string(p);
      format = {name, p, Binary64().emin, 127, PowerOfTwo(127) * (2 - PowerOfTwo(1 - p))};
    }
    return all;
  }();
  ULPSCOPE_CHECK(bits >= 2 && bits <= 52, "a format of so many bits");
  return formats[static_cast<size_t>(bits)].format;
}

bool IsOfBits(const FloatFormat& format) {
  return format.precision >= 2 && format.precision <= 52 && &format == &FormatOfBits(format.precision);
}

bool Holds(const FloatFormat& outer, const FloatFormat& inner) {
  return outer.precision >= inner.precision && outer.emin - outer.precision <= inner.emin - inner.precision &&
         outer.emax >= inner.emax;
}

std::string_view Name(Rounding rounding) { return RowOf(rounding).word; }
std::string_view About(Rounding rounding) { return RowOf(rounding).about; }

std::optional<Rounding> ParseRounding(std::string_view name) {
  const auto row = std::ranges::find(kRoundings, name, &RoundingRow::word);
  return row == kRoundings.end() ? std::nullopt : std::optional(row->rounding);
}

const std::vector<std::string>& AllRoundingNames() {
  static const auto names = Mapped<std::string>(kRoundings, &RoundingRow::word);
  return names;
}

double ToOdd(TwoDoubles value) {
  const double hi = value.hi;
  if (value.lo == 0 || !std::isfinite(hi) || (std::bit_cast<uint64_t>(hi) & 1) != 0) return hi;
  // Doubles of one sign are ordered as their bits are.
  const bool outwards = std::signbit(value.lo) == std::signbit(hi);
  return hi == 0 ? value.lo : std::bit_cast<double>(std::bit_cast<uint64_t>(hi) + (outwards ? 1 : -1ull));
}

double RoundTo(TwoDoubles value, const FloatFormat& format, Rounding rounding, Subnormals subnormals) {
  double hi = value.hi;
  const double lo = value.lo;
  if (std::isnan(hi) || std::isinf(hi) || hi == 0) return hi;
  if (format.precision == 53) {
    if (rounding == Rounding::kTowardZero && lo != 0 && std::signbit(lo) != std::signbit(hi))
      hi = std::nextafter(hi, 0.0);
    if (rounding == Rounding::kToOdd) hi = ToOdd(value);
  } else {
    hi = ToOdd(value);
  }
  if (format.precision == 53)
    return subnormals == Subnormals::kFlushed && std::fabs(hi) < PowerOfTwo(-1022) ? std::copysign(0.0, hi)
                                                                                   : hi;
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
    case Rounding::kToOdd:
      if (rest > 0 && std::fmod(whole, 2.0) == 0) whole += 1;
      break;
    case Rounding::kNearestAway:
      if (rest >= 0.5) whole += 1;
      break;
    case Rounding::kNearestEven:
      if (rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2.0) != 0)) whole += 1;
      break;
  }
  const double result = std::ldexp(whole, quantum_exponent);
  if (subnormals == Subnormals::kFlushed && result < PowerOfTwo(format.emin)) return std::copysign(0.0, hi);
  return std::copysign(result, hi);
}

double RoundTo(double value, const FloatFormat& format, Rounding rounding, Subnormals subnormals) {
  // What most calls are about: a normal number, and no tail beside it.
  const double magnitude = std::fabs(value);
  if (format.precision < 53 && magnitude >= Pow2Cached(format.emin) && std::isfinite(magnitude))
    return RoundNormal(value, format, rounding);
  return RoundTo(TwoDoubles{.hi = value, .lo = 0}, format, rounding, subnormals);
}

bool IsRepresentable(double value, const FloatFormat& format) {
  if (std::isnan(value)) return true;
  if (std::isinf(value)) return format.specials == Specials::kIeee;
  return RoundTo(value, format) == value;
}

double Ulp(double value, const FloatFormat& format) {
  const double magnitude = std::fabs(value);
  if (!(magnitude >= PowerOfTwo(format.emin))) return format.SmallestSubnormal();
  if (std::isinf(magnitude)) return PowerOfTwo(format.emax - format.precision + 1);
  return PowerOfTwo(std::min(BinadeOf(magnitude), format.emax) - format.precision + 1);
}

double UlpError(double observed, TwoDoubles reference, const FloatFormat& format) {
  if (std::isnan(observed) || std::isnan(reference.hi))
    return std::isnan(observed) && std::isnan(reference.hi) ? 0 : kInf;
  // Infinite is what a number beyond the format's range is rounded to.
  if (std::isinf(observed)) return observed == RoundTo(reference.hi, format) ? 0 : kInf;
  if (std::isinf(reference.hi)) return kInf;
  return ((observed - reference.hi) - reference.lo) / Ulp(reference.hi, format);
}

size_t DifferentValues(std::span<const double> a, std::span<const double> b) {
  size_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += SameValue(a[i], b[i]) ? 0 : 1;
  return count;
}

double UlpDistance(double a, double b, const FloatFormat& format) {
  if (SameValue(a, b)) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return kInf;
  return std::fabs(a - b) / Ulp(std::max(std::fabs(a), std::fabs(b)), format);
}

int SignificantBits(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  int exponent;
  const double fraction = std::frexp(std::fabs(value), &exponent);
  const auto integer = static_cast<uint64_t>(std::ldexp(fraction, 53));
  return 53 - std::countr_zero(integer);
}

int ExponentOfLowestBit(double value) {
  if (value == 0) return kAnyMultiple;
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto fraction = bits & ((uint64_t{1} << 52) - 1);
  const auto exponent = static_cast<int>(bits >> 52 & 0x7ff);
  if (exponent == 0) return std::countr_zero(fraction) - 1074;
  return std::countr_zero(fraction | uint64_t{1} << 52) + exponent - 1075;
}

std::string ShortestDecimal(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return std::string(buffer.data(), end);
}

std::string FormatDecimal(double value) {
  const bool in_range = std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max());
  const float narrow = in_range ? static_cast<float>(value) : 0.0F;
  if (!in_range || static_cast<double>(narrow) != value) return ShortestDecimal(value);
  std::array<char, 40> buffer{};
  return std::string(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), narrow).ptr);
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
