// FloatFormat: a binary floating-point format as a value, correct rounding into it, and THE definition of
// ulp.
//
// A format is described as IEEE 754-2019 3.3 does: precision p (significand bits, the implicit one included),
// emin and emax. Rounding works on binary64 carriers: every format here has p <= 53 and an exponent range
// inside binary64's, so each of its values is a binary64 value. A real number that binary64 cannot hold is
// carried as hi + lo (hi the rounding to nearest, lo the rest), and rounded to the narrow format from (hi,
// sign(lo)): rounding hi alone would round twice (1 + 2^-8 + 2^-60 to bfloat16 by way of binary64 gives the
// wrong neighbour).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/num/dtype.h"

namespace ulpscope {

/// kToOdd: towards zero, and the last bit is set where anything was lost.
enum class Rounding { kNearestEven, kNearestAway, kTowardZero, kToOdd };
enum class Subnormals { kGradual, kFlushed };
/// "rne", "rz", "rna", "odd".
std::string_view Name(Rounding rounding);
/// "rounded toward zero"; empty of the usual one.
std::string_view About(Rounding rounding);
std::optional<Rounding> ParseRounding(std::string_view name);
const std::vector<std::string>& AllRoundingNames();

/// The meaning of the codes beyond the numbers: that of IEEE 754; or there are no infinities, and the NaN is
/// the largest code of either sign, or the one that would be -0.
enum class Specials { kIeee, kLastIsNan, kMinusZeroIsNan };

inline constexpr double kInf = std::numeric_limits<double>::infinity();

struct FloatFormat {
  std::string_view name;  ///< long name; "tf32" is a compute format without a dtype
  int precision = 0;      ///< p
  int emin = 0;           ///< exponent of the smallest normal number: 2^emin
  int emax = 0;           ///< exponent of the largest finite number
  double max_finite = 0;  ///< largest finite value
  Specials specials = Specials::kIeee;

  /// The quantum of subnormals, 2^(emin - p + 1).
  double SmallestSubnormal() const;
  bool operator==(const FloatFormat& other) const { return name == other.name; }
};

const FloatFormat& Binary64();
const FloatFormat& Binary32();
const FloatFormat& Bfloat16();
const FloatFormat& Binary16();
const FloatFormat& Tf32();
const FloatFormat& Float8E4m3fn();
const FloatFormat& Float8E5m2();

/// Null when `dtype` is not a floating type.
const FloatFormat* FormatOf(DType dtype);
/// By long name ("bfloat16", "tf32", ...); null when unknown.
const FloatFormat* FindFormat(std::string_view name);
const std::vector<const FloatFormat*>& AllFormats();
/// p significant bits, called "p12", up to float32's largest number, and as many of the smallest ones: what has lost bits of them has
/// lost them by the format that it is stored in. 2 <= bits <= 52.
const FloatFormat& FormatOfBits(int bits);
/// One of FormatOfBits.
bool IsOfBits(const FloatFormat& format);

/// Every value of `inner` is a value of `outer`.
bool Holds(const FloatFormat& outer, const FloatFormat& inner);

/// A real number carried as hi + lo with |lo| <= ulp(hi)/2 and hi = RN53(hi + lo).
struct TwoDoubles {
  double hi = 0;
  double lo = 0;
};

/// One double that later roundings to at most 51 bits treat as they would treat the pair: where lo is not
/// zero, the last bit of hi remembers that something lies beside it (Boldo and Melquiond, "Emulation of FMA
/// and correctly rounded sums", 2008).
double ToOdd(TwoDoubles value);

/// Rounds the exact value of `value` once into `format`.
double RoundTo(double value, const FloatFormat& format, Rounding rounding = Rounding::kNearestEven,
               Subnormals subnormals = Subnormals::kGradual);
/// Rounds hi + lo once into `format` (see the top of this file). Only the sign of lo matters.
double RoundTo(TwoDoubles value, const FloatFormat& format, Rounding rounding = Rounding::kNearestEven,
               Subnormals subnormals = Subnormals::kGradual);

/// True if `value` is a finite or special value of `format`.
bool IsRepresentable(double value, const FloatFormat& format);

/// The unit in the last place at the exact value `value` in `format`: 2^(e - p + 1) for |value| in [2^e,
/// 2^(e+1)), the subnormal quantum below 2^emin (Goldberg 1991, section 1.2, in the variant that takes the
/// binade of the exact value; Muller, "On the definition of ulp(x)", 2005, gives the alternatives).
double Ulp(double value, const FloatFormat& format);

/// ((observed - hi) - lo) / Ulp(hi): the signed error of an observed value in ulps of `format`.
double UlpError(double observed, TwoDoubles reference, const FloatFormat& format);

/// How far two values of `format` lie apart, in ulps of the larger one: 0 for two NaNs, infinite where just
/// one is finite or a NaN.
double UlpDistance(double a, double b, const FloatFormat& format);

/// Equal, or both NaN.
inline bool SameValue(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
/// How many values of `a` are not those of `b`, which has as many.
size_t DifferentValues(std::span<const double> a, std::span<const double> b);

/// Significant bits of `value`: 1 for powers of two, 0 for zero.
int SignificantBits(double value);
/// The greatest e for which a finite value is a multiple of 2^e; of zero, which is one of any, kAnyMultiple.
int ExponentOfLowestBit(double value);
constexpr int kAnyMultiple = 8000;

/// Bits of one element (little endian, SizeOf(dtype) bytes) to its value; integers and bool convert exactly
/// or to nearest.
double DecodeElement(const std::byte* bytes, DType dtype);
/// Stores `value`, which must be representable for floating types, as one element.
void EncodeElement(double value, DType dtype, std::byte* bytes);

/// "0x1.8p+1 (3)": hex float and decimal, as every number in a report is printed.
std::string FormatNumber(double value);
/// "inf", "-inf", "nan" or a shortest decimal that reads back to the same double.
std::string ShortestDecimal(double value);
/// For a reader: as few digits as distinguish a value of float32 or narrower from its neighbours there.
std::string FormatDecimal(double value);

}  // namespace ulpscope
