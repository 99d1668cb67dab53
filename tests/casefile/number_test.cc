// Numbers as text: what is accepted, what is refused, and that the exact value is rounded once.
#include "harness/casefile/number.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

namespace ulpscope {
namespace {

double Read(std::string_view text, const FloatFormat& format = Binary64()) {
  auto number = ParseNumber(text);
  if (!number) ADD_FAILURE() << text << ": " << number.error().Text();
  auto value = RoundNumber(number.value(), format);
  if (!value) ADD_FAILURE() << text << ": " << value.error().Text();
  return value.value();
}

TEST(Number, EveryForm) {
  EXPECT_EQ(Read("12"), 12.0);
  EXPECT_EQ(Read("-0.5"), -0.5);
  EXPECT_EQ(Read("1e-5"), 1e-5);
  EXPECT_EQ(Read("2.5E+3"), 2500.0);
  EXPECT_EQ(Read("0x1.8p+1"), 3.0);
  EXPECT_EQ(Read("-0xA.8P-2"), -2.625);
  EXPECT_EQ(Read("0x1p-1074"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(Read("1/3"), 1.0 / 3.0);
  EXPECT_EQ(Read("-2/7"), -2.0 / 7.0);
  EXPECT_EQ(Read("inf"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(Read("-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(Read("nan")));
  EXPECT_TRUE(std::signbit(Read("-0.0")));
  EXPECT_EQ(ParseNumber("bits:0x3f80")->bits, 0x3f80u);
  EXPECT_EQ(ParseNumber("bits:0x3f80")->bit_digits, 4);
}

TEST(Number, RefusesWhatReadersReadInTwoWays) {
  for (const char* text : {"",
                           "010",
                           "-007",
                           "00",
                           "1.",
                           ".5",
                           "-.5",
                           "+1",
                           "1_000",
                           "0x10",
                           "0x",
                           "0x1.p1",
                           "0x1p",
                           "1e",
                           "1e+",
                           "0b1",
                           "0o17",
                           "1:30",
                           "1/0",
                           "1/02",
                           "01/2",
                           "1/-3",
                           "1/2.5",
                           "1 2",
                           "1e9999",
                           "0x1p99999",
                           "1f",
                           "yes",
                           "no",
                           "on",
                           "Off",
                           "True",
                           "~",
                           "null",
                           ".inf",
                           ".NaN",
                           "NaN",
                           "Infinity",
                           "1,5",
                           "bits:",
                           "bits:3f80",
                           "bits:0x",
                           "bits:0x11112222333344445",
                           "--1",
                           "- 1",
                           "1.5.2",
                           "\xC2\xB2"}) {
    EXPECT_FALSE(ParseNumber(text).has_value()) << text;
  }
  EXPECT_THAT(ParseNumber("010").error().hint, ::testing::HasSubstr("leading zero"));
  EXPECT_FALSE(ParseNumber(std::string(2000, '1')).has_value());
  for (const char* text : {"", "-", "010", "1.0", "1e3", "0x10", "9223372036854775808", "+1", "1_0"}) {
    EXPECT_FALSE(ParseInteger(text).has_value()) << text;
  }
  EXPECT_EQ(ParseInteger("-9223372036854775808").value(), INT64_MIN);
}

TEST(Number, RoundsTheExactValueOnce) {
  // 1 + 2^-8 is a tie of bfloat16; the tail of 2^-60, which binary64 cannot hold, decides it.
  EXPECT_EQ(Read("1.00390625", Bfloat16()), 1.0);
  EXPECT_EQ(Read("1.00390625000000000086736173798840354720596224069595336914062500", Bfloat16()), 0x1.02p0);
  EXPECT_EQ(Read("1.0117187499999999999999999999999999999999999999", Bfloat16()), 0x1.02p0);
  EXPECT_EQ(Read("1.01171875", Bfloat16()), 0x1.04p0);
  EXPECT_EQ(Read("0x1.0100000000000000000001p0", Bfloat16()), 0x1.02p0);
  // The same at binary32 and binary64.
  EXPECT_EQ(Read("1.000000059604644775390625", Binary32()), 1.0);
  EXPECT_EQ(Read("1.00000005960464477539062500000000000000000000000000000001", Binary32()), 0x1.000002p0);
  EXPECT_EQ(Read("1.00000000000000011102230246251565404236316680908203125"), 1.0);
  EXPECT_EQ(Read("1.000000000000000111022302462515654042363166809082031250001"), 0x1.0000000000001p0);
  // Half of the smallest subnormal goes to even zero, a little more to one quantum.
  EXPECT_EQ(Read("0x1p-1075"), 0.0);
  EXPECT_EQ(Read("0x1.0000000000000001p-1075"), 0x1p-1074);
  EXPECT_EQ(Read("1e-400"), 0.0);
  EXPECT_EQ(Read("0x1p-150", Binary32()), 0.0);
  EXPECT_EQ(Read("0x1.00000000000000000001p-150", Binary32()), 0x1p-149);
}

TEST(Number, OverflowIsAnErrorNotAnInfinity) {
  const auto fails = [](std::string_view text, const FloatFormat& format) {
    return !RoundNumber(*ParseNumber(text), format).has_value();
  };
  EXPECT_TRUE(fails("65520", Binary16()));
  EXPECT_FALSE(fails("65519.999", Binary16()));
  EXPECT_TRUE(fails("1e400", Binary64()));
  EXPECT_TRUE(fails("464.1", Float8E4m3fn()));
  EXPECT_TRUE(fails("inf", Float8E4m3fn()));
  EXPECT_FALSE(fails("inf", Float8E5m2()));
  EXPECT_TRUE(fails("bits:0x3f80", Bfloat16()));
}

TEST(Number, AgreesWithTheCLibraryOnRandomDecimals) {
  ASSERT_STREQ(std::setlocale(LC_NUMERIC, nullptr), "C");
  std::mt19937_64 random(7);
  int64_t compared = 0;
  for (int i = 0; i < 40000; ++i) {
    std::string text = std::to_string(1 + random() % 9);
    const auto digits = random() % 40;
    if (digits > 0) text += '.';
    for (uint64_t k = 0; k < digits; ++k) text += static_cast<char>('0' + random() % 10);
    text += "e" + std::to_string(static_cast<int>(random() % 640) - 330);
    const double reference = std::strtod(text.c_str(), nullptr);
    const auto number = ParseNumber(text);
    ASSERT_TRUE(number) << text;
    if (std::isinf(reference)) {
      EXPECT_FALSE(RoundNumber(*number, Binary64()).has_value()) << text;
      continue;
    }
    ASSERT_EQ(RoundNumber(*number, Binary64()).value(), reference) << text;
    const float narrow = std::strtof(text.c_str(), nullptr);
    if (!std::isinf(narrow)) {
      ASSERT_EQ(RoundNumber(*number, Binary32()).value(), narrow) << text;
      ++compared;
    }
  }
  EXPECT_GT(compared, 10000);
}

TEST(Number, FractionsAgreeWithTheProcessor) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 40000; ++i) {
    // Below 2^53 both are exact, and the processor's division is correctly rounded.
    const uint64_t above = random() >> (11 + random() % 40), below = 1 + (random() >> (11 + random() % 40));
    ASSERT_EQ(Read(std::to_string(above) + "/" + std::to_string(below)),
              static_cast<double>(above) / static_cast<double>(below))
        << above << "/" << below;
  }
}

TEST(BigUint, DivisionAgreesWith128Bits) {
  std::mt19937_64 random(9);
  const auto make = [](Uint128 value) {
    BigUint result;
    for (int shift = 96; shift >= 0; shift -= 32) {
      result.ShiftLeft(32);
      result.MultiplyAdd(1, static_cast<uint32_t>(value >> shift));
    }
    return result;
  };
  for (int i = 0; i < 40000; ++i) {
    Uint128 above = (static_cast<Uint128>(random()) << 64) | random();
    Uint128 below = (static_cast<Uint128>(random()) << 64) | random();
    above >>= random() % 120;
    below >>= random() % 128;
    if (i % 5 == 0)
      below |= ~Uint128{0} << (random() % 100);  // long runs of ones: the estimate of a digit is corrected
    if (below == 0) continue;
    const auto division = make(above).DividedBy(make(below));
    ASSERT_TRUE(division.quotient.Low128() == above / below) << i;
    ASSERT_EQ(division.remainder == BigUint::Division::Remainder::kNonZero, above % below != 0) << i;
  }
}

TEST(SmallFraction, KeepsPowersOfTwoApart) {
  const auto fraction = ToSmallFraction(*ParseNumber("0.1")).value();
  EXPECT_EQ(fraction.numerator, 1);
  EXPECT_EQ(fraction.denominator, 5);
  EXPECT_EQ(fraction.exponent, -1);
  EXPECT_EQ(ToSmallFraction(*ParseNumber("-0x3p-900")).value().numerator, -3);
  EXPECT_FALSE(ToSmallFraction(*ParseNumber("0.1234567890123456789012345")).has_value());
  EXPECT_FALSE(ToSmallFraction(*ParseNumber("inf")).has_value());
}

}  // namespace
}  // namespace ulpscope
