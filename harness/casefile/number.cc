// Reading numbers exactly and rounding them once.
#include "harness/casefile/number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "harness/base/check.h"
#include "harness/base/find.h"
#include "harness/base/text.h"

namespace ulpscope {
namespace {

// Beyond these no format has a value, and the exact arithmetic would grow without use.
constexpr size_t kMaxNumberText = 1000;
constexpr int kMaxDecimalExponent = 1000;
constexpr int kMaxBinaryExponent = 5000;

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

tl::unexpected<Error> Bad(std::string_view text, std::string hint) {
  std::string shown(text.substr(0, 40));
  if (text.size() > 40) shown += "...";
  return Fail(Problem("bad number", "'" + shown + "'", "a number: 12, -0.5, 1e-5, 0x1.8p+1, 1/3, inf, nan",
                      std::move(hint)));
}

/// Reads over a text from the left.
struct Cursor {
  std::string_view text;
  size_t at = 0;

  bool AtEnd() const { return at == text.size(); }
  bool Take(char c) {
    if (AtEnd() || text[at] != c) return false;
    ++at;
    return true;
  }
  std::string_view TakeDigits() {
    const size_t start = at;
    while (!AtEnd() && IsDigit(text[at])) ++at;
    return text.substr(start, at - start);
  }
  std::string_view TakeHexDigits() {
    const size_t start = at;
    while (!AtEnd() && HexDigit(text[at]) >= 0) ++at;
    return text.substr(start, at - start);
  }
};

void AppendDecimal(BigUint& number, std::string_view digits) {
  for (size_t i = 0; i < digits.size();) {
    uint32_t scale = 1;
    uint32_t chunk = 0;
    for (int k = 0; k < 9 && i < digits.size(); ++k, ++i) {
      scale *= 10;
      chunk = chunk * 10 + static_cast<uint32_t>(digits[i] - '0');
    }
    number.MultiplyAdd(scale, chunk);
  }
}

/// A signed exponent after e or p; nothing when it is malformed or outside [-limit, limit].
std::optional<int> TakeExponent(Cursor& cursor, int limit) {
  const bool negative = cursor.Take('-');
  if (!negative) cursor.Take('+');
  const std::string_view digits = cursor.TakeDigits();
  int value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || code != std::errc() || value > limit) return std::nullopt;
  return negative ? -value : value;
}

Result<ExactNumber> ParseHexFloat(Cursor cursor, ExactNumber number) {
  const std::string_view whole = cursor.TakeHexDigits();
  std::string_view fraction;
  if (whole.empty()) return Bad(cursor.text, "");
  if (cursor.Take('.')) {
    fraction = cursor.TakeHexDigits();
    if (fraction.empty()) return Bad(cursor.text, "digits are missing after the point");
  }
  if (!cursor.Take('p') && !cursor.Take('P'))
    return Bad(cursor.text, "a hex float ends in a binary exponent, as in 0x1.8p+1");
  const auto exponent = TakeExponent(cursor, kMaxBinaryExponent);
  if (!exponent) return Bad(cursor.text, "the exponent is missing or too large");
  if (!cursor.AtEnd()) return Bad(cursor.text, "");
  for (const std::string_view digits : {whole, fraction}) {
    for (const char digit : digits) number.numerator.MultiplyAdd(16, static_cast<uint32_t>(HexDigit(digit)));
  }
  number.exponent2 = *exponent - 4 * static_cast<int>(fraction.size());
  return number;
}

Result<ExactNumber> ParseBits(std::string_view text) {
  Cursor cursor{.text = text, .at = std::string_view("bits:").size()};
  if (!cursor.Take('0') || !cursor.Take('x')) return Bad(text, "write a bit pattern as bits:0x3f80");
  const std::string_view digits = cursor.TakeHexDigits();
  if (digits.empty() || digits.size() > 16 || !cursor.AtEnd())
    return Bad(text, "a bit pattern has 1 to 16 hex digits");
  ExactNumber number;
  number.kind = ExactNumber::Kind::kBits;
  number.bit_digits = static_cast<int>(digits.size());
  for (const char digit : digits) number.bits = number.bits * 16 + static_cast<uint64_t>(HexDigit(digit));
  return number;
}

Result<ExactNumber> ParseDecimal(Cursor cursor, ExactNumber number) {
  const std::string_view text = cursor.text;
  const std::string_view whole = cursor.TakeDigits();
  if (whole.empty())
    return Bad(text, text.starts_with(".") || text.starts_with("-.") ? "write 0.5, not .5" : "");
  if (whole.size() > 1 && whole[0] == '0') return Bad(text, "no leading zeros: some readers take 010 for 8");
  AppendDecimal(number.numerator, whole);
  if (cursor.AtEnd()) {
    number.syntax = ExactNumber::Syntax::kInteger;
    return number;
  }
  if (cursor.Take('/')) {
    const std::string_view below = cursor.TakeDigits();
    if (below.empty() || !cursor.AtEnd()) return Bad(text, "a fraction is two integers, as in 1/3");
    number.denominator = BigUint();
    AppendDecimal(number.denominator, below);
    if (below[0] == '0')
      return Bad(text, number.denominator.IsZero() ? "the denominator is 0" : "no leading zeros");
    return number;
  }
  int exponent10 = 0;
  if (cursor.Take('.')) {
    const std::string_view fraction = cursor.TakeDigits();
    if (fraction.empty()) return Bad(text, "digits are missing after the point: write 1.0, not 1.");
    AppendDecimal(number.numerator, fraction);
    exponent10 = -static_cast<int>(fraction.size());
  }
  if (cursor.Take('e') || cursor.Take('E')) {
    const auto exponent = TakeExponent(cursor, kMaxDecimalExponent);
    if (!exponent) return Bad(text, "the exponent is missing or too large");
    exponent10 += *exponent;
  }
  if (!cursor.AtEnd()) return Bad(text, text.find('_') != text.npos ? "no underscores in numbers" : "");
  (exponent10 < 0 ? number.denominator : number.numerator).MultiplyByPowerOf(5, std::abs(exponent10));
  number.exponent2 = exponent10;
  return number;
}

}  // namespace

bool IsAmbiguousWord(std::string_view text) {
  // The boolean and null words of YAML 1.1 and 1.2 (core schema) in all their spellings, true and false
  // apart. (y and n alone are left out: no reader in use takes them for booleans any more, and y is a fine
  // name for a tensor.)
  static constexpr std::array<std::string_view, 29> kWords{
      "yes",  "Yes",  "YES",  "no",    "No",    "NO",    "on",   "On",   "ON",   "off",
      "Off",  "OFF",  "True", "TRUE",  "False", "FALSE", "null", "Null", "NULL", "~",
      ".inf", ".Inf", ".INF", "-.inf", "-.Inf", "-.INF", ".nan", ".NaN", ".NAN"};
  return Contains(kWords, text);
}

bool LooksLikeNumber(std::string_view text) {
  if (text == "inf" || text == "-inf" || text == "nan" || text.starts_with("bits:")) return true;
  size_t at = 0;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  if (at < text.size() && text[at] == '.') ++at;
  return at < text.size() && IsDigit(text[at]);
}

Result<ExactNumber> ParseNumber(std::string_view text) {
  if (text.empty()) return Bad(text, "");
  if (text.size() > kMaxNumberText) return Bad(text, "at most 1000 characters");
  if (IsAmbiguousWord(text))
    return Bad(text, "YAML readers disagree about this word; write inf, -inf or nan for those");
  ExactNumber number;
  if (text == "nan") {
    number.kind = ExactNumber::Kind::kNan;
    return number;
  }
  if (text.starts_with("bits:")) return ParseBits(text);
  Cursor cursor{.text = text};
  number.negative = cursor.Take('-');
  if (text.substr(cursor.at) == "inf") {
    number.kind = ExactNumber::Kind::kInfinite;
    return number;
  }
  if (text[0] == '+') return Bad(text, "write it without the plus sign");
  if (text.substr(cursor.at).starts_with("0x")) {
    cursor.at += 2;
    return ParseHexFloat(cursor, std::move(number));
  }
  return ParseDecimal(cursor, std::move(number));
}

Result<int64_t> ParseInteger(std::string_view text) {
  const auto refuse = [&](std::string hint) {
    return Fail(
        Problem("bad integer", "'" + std::string(text.substr(0, 40)) + "'", "an integer", std::move(hint)));
  };
  const std::string_view digits = text.starts_with("-") ? text.substr(1) : text;
  if (digits.empty() || !std::ranges::all_of(digits, IsDigit)) return refuse("");
  if (digits.size() > 1 && digits[0] == '0') return refuse("no leading zeros: some readers take 010 for 8");
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc()) return refuse("it does not fit 64 bits");
  return value;
}

TwoDoubles Carry(const CutDyadic& value) {
  const double sign = value.sign == CutDyadic::Sign::kMinus ? -1.0 : 1.0;
  if (value.magnitude == 0) return {.hi = sign * 0.0, .lo = 0};
  const int bits = BitLength(value.magnitude);
  const bool tail = value.tail == CutDyadic::Tail::kNonZero;
  ULPSCOPE_CHECK(bits <= 126 && (!tail || bits >= 56), "dyadic out of the range that Carry takes");
  constexpr double kRest = std::numeric_limits<double>::denorm_min();
  const int quantum = std::max(value.exponent + bits - 1, -1022) - 52;
  const int shift = quantum - value.exponent;
  if (shift <= 0)
    return {.hi = sign * std::ldexp(static_cast<double>(value.magnitude), value.exponent), .lo = 0};
  if (shift > 126) return {.hi = sign * 0.0, .lo = sign * kRest};  // below half of the smallest subnormal
  const Uint128 one = 1;
  Uint128 kept = value.magnitude >> shift;
  const Uint128 rest = value.magnitude & ((one << shift) - 1);
  const Uint128 half = one << (shift - 1);
  const bool up = rest > half || (rest == half && (tail || (kept & 1) != 0));
  if (up) ++kept;
  const double hi = std::ldexp(static_cast<double>(static_cast<uint64_t>(kept)), quantum);
  const double lo = rest == 0 && !tail ? 0.0 : (up ? -kRest : kRest);
  return {.hi = sign * hi, .lo = sign * lo};
}

CutDyadic CutToDyadic(const ExactNumber& number) {
  ULPSCOPE_CHECK(number.kind == ExactNumber::Kind::kFinite, "only a finite number has a quotient");
  CutDyadic result{.sign = number.negative ? CutDyadic::Sign::kMinus : CutDyadic::Sign::kPlus};
  if (number.numerator.IsZero()) return result;
  // Shifted so that the quotient has 66 or 67 bits.
  const int shift = 66 - (number.numerator.BitLength() - number.denominator.BitLength());
  BigUint numerator = number.numerator;
  BigUint denominator = number.denominator;
  (shift >= 0 ? numerator : denominator).ShiftLeft(std::abs(shift));
  const auto division = numerator.DividedBy(denominator);
  result.magnitude = division.quotient.Low128();
  result.tail = division.remainder == BigUint::Division::Remainder::kZero ? CutDyadic::Tail::kZero
                                                                          : CutDyadic::Tail::kNonZero;
  result.exponent = number.exponent2 - shift;
  return result;
}

Result<double> RoundNumber(const ExactNumber& number, const FloatFormat& format) {
  const auto refuse = [&](std::string message) { return Fail(message + " " + std::string(format.name)); };
  switch (number.kind) {
    case ExactNumber::Kind::kBits:
      return Fail("a bit pattern stands only for an element of a tensor");
    case ExactNumber::Kind::kNan:
      return std::numeric_limits<double>::quiet_NaN();
    case ExactNumber::Kind::kInfinite:
      if (format.specials != Specials::kIeee) return refuse("there is no infinity in");
      return number.negative ? -kInf : kInf;
    case ExactNumber::Kind::kFinite:
      break;
  }
  const double rounded = RoundTo(Carry(CutToDyadic(number)), format);
  if (!std::isfinite(rounded)) return refuse("the number is too large for");
  return rounded;
}

Result<SmallFraction> ToSmallFraction(const ExactNumber& number) {
  const auto refuse = [](std::string message) { return Fail(std::move(message)); };
  if (number.kind != ExactNumber::Kind::kFinite) return refuse("a finite number is needed here");
  SmallFraction result;
  if (number.numerator.IsZero()) return result;
  BigUint above = number.numerator;
  BigUint below = number.denominator;
  const int zeros_above = above.TrailingZeros();
  const int zeros_below = below.TrailingZeros();
  above.ShiftRight(zeros_above);
  below.ShiftRight(zeros_below);
  if (above.BitLength() > 62 || below.BitLength() > 62)
    return refuse("too many digits for a parameter of a fill (at most 18)");
  const auto numerator = static_cast<int64_t>(above.ToUint64());
  const auto denominator = static_cast<int64_t>(below.ToUint64());
  const int64_t common = std::gcd(numerator, denominator);
  result.numerator = (number.negative ? -1 : 1) * (numerator / common);
  result.denominator = denominator / common;
  result.exponent = number.exponent2 + zeros_above - zeros_below;
  return result;
}

}  // namespace ulpscope
