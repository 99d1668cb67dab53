// Formats, rounding and ulp against hand-computed values and the hardware's own float32 conversion.
#include "harness/num/float_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace ulpscope {
namespace {

TEST(RoundTo, NarrowRoundingSeesTheTail) {
  // 1 + 2^-8 is a tie of bfloat16; the tail of 2^-60 decides it upwards. Rounding through binary64 would lose
  // it.
  EXPECT_EQ(RoundTo(TwoDoubles{0x1.01p0, 0}, Bfloat16()), 1.0);
  EXPECT_EQ(RoundTo(TwoDoubles{0x1.01p0, 0x1p-60}, Bfloat16()), 0x1.02p0);
  EXPECT_EQ(RoundTo(TwoDoubles{0x1.03p0, -0x1p-60}, Bfloat16()), 0x1.02p0);
  EXPECT_EQ(RoundTo(TwoDoubles{0x1.03p0, 0}, Bfloat16()), 0x1.04p0);
}

TEST(RoundTo, ModesDifferOnTies) {
  EXPECT_EQ(RoundTo(0x1.01p0, Bfloat16(), Rounding::kNearestAway), 0x1.02p0);
  EXPECT_EQ(RoundTo(0x1.01p0, Bfloat16(), Rounding::kTowardZero), 1.0);
  EXPECT_EQ(RoundTo(-0x1.03p0, Bfloat16(), Rounding::kTowardZero), -0x1.02p0);
}

TEST(RoundTo, ToOddSetsTheLastBitOfWhatIsInexact) {
  using enum Rounding;
  EXPECT_EQ(RoundTo(1.0, Bfloat16(), kToOdd), 1.0);
  EXPECT_EQ(RoundTo(0x1.001p0, Bfloat16(), kToOdd), 0x1.02p0);
  EXPECT_EQ(RoundTo(0x1.02fp0, Bfloat16(), kToOdd), 0x1.02p0) << "odd already";
  EXPECT_EQ(RoundTo(-0x1.04001p0, Bfloat16(), kToOdd), -0x1.06p0);
  EXPECT_EQ(RoundTo(TwoDoubles{1.0, -0x1p-80}, Bfloat16(), kToOdd), 0x1.FEp-1);
  EXPECT_EQ(RoundTo(TwoDoubles{1.0, 0x1p-80}, Binary64(), kToOdd), 1.0 + 0x1p-52);
  EXPECT_EQ(RoundTo(0x1.8p-149, Binary32(), kToOdd), 0x1p-149);
  EXPECT_EQ(RoundTo(0x1.2p-148, Binary32(), kToOdd), 0x1.8p-148);
  EXPECT_TRUE(std::isinf(RoundTo(0x1p128, Binary32(), kToOdd)));
  // Why it is there: rounding to odd first makes a second rounding to nearest right (Boldo and Melquiond).
  for (int i = 0; i < 4096; ++i) {
    const double value = 1 + i * 0x1p-12 + 0x1p-30 * ((i * 7) % 5 - 2);
    ASSERT_EQ(RoundTo(RoundTo(value, FormatOfBits(12), kToOdd), Bfloat16()), RoundTo(value, Bfloat16()));
  }
}

TEST(RoundTo, Float32AgreesWithTheProcessor) {
  uint64_t state = 1;
  int64_t compared = 0;
  for (int i = 0; i < 200000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    // Exponents around float32's whole range, subnormals and overflow included.
    const double value =
        std::ldexp(1.0 + static_cast<double>(state >> 12) * 0x1p-52, static_cast<int>(state % 300) - 160) *
        ((state & 1) != 0 ? 1 : -1);
    ASSERT_EQ(RoundTo(value, Binary32()), static_cast<double>(static_cast<float>(value))) << value;
    ++compared;
  }
  EXPECT_EQ(compared, 200000);
}

TEST(RoundTo, OverflowAndFlush) {
  EXPECT_EQ(RoundTo(65520.0, Binary16()), std::numeric_limits<double>::infinity());
  EXPECT_EQ(RoundTo(65519.0, Binary16()), 65504.0);
  EXPECT_EQ(RoundTo(70000.0, Binary16(), Rounding::kTowardZero), 65504.0);
  EXPECT_TRUE(std::isnan(RoundTo(1e6, Float8E4m3fn())));
  EXPECT_EQ(RoundTo(0x1p-130, Binary32(), Rounding::kNearestEven, Subnormals::kFlushed), 0.0);
  EXPECT_EQ(RoundTo(0x1p-130, Binary32()), 0x1p-130);
}

TEST(Ulp, TakesTheBinadeOfTheExactValue) {
  EXPECT_EQ(Ulp(1.0, Binary32()), 0x1p-23);
  EXPECT_EQ(Ulp(std::nextafter(1.0, 0.0), Binary32()), 0x1p-24);
  EXPECT_EQ(Ulp(0.0, Binary32()), 0x1p-149);
  EXPECT_EQ(Ulp(3.0, Bfloat16()), 0x1p-6);
  EXPECT_EQ(UlpError(0x1.02p0, TwoDoubles{1.0, 0x1p-70}, Bfloat16()), 1.0 - 0x1p-63);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(UlpError(infinity, TwoDoubles{4.8e38, 0}, Binary32()), 0)
      << "beyond the range: what it is rounded to";
  EXPECT_EQ(UlpError(-infinity, TwoDoubles{4.8e38, 0}, Binary32()), infinity);
  EXPECT_EQ(UlpError(infinity, TwoDoubles{3.4e38, 0}, Binary32()), infinity) << "within the range";
}

TEST(Codec, EverySixteenAndEightBitPatternRoundTrips) {
  int64_t checked = 0;
  for (const DType dtype : AllDTypes()) {
    if (!IsFloating(dtype) || SizeOf(dtype) > 2) continue;
    const uint32_t count = SizeOf(dtype) == 2 ? 65536 : 256;
    for (uint32_t bits = 0; bits < count; ++bits) {
      std::byte in[2], out[2];
      std::memcpy(in, &bits, 2);
      const double value = DecodeElement(in, dtype);
      if (std::isnan(value)) continue;
      EncodeElement(value, dtype, out);
      ASSERT_EQ(std::memcmp(in, out, SizeOf(dtype)), 0) << Name(dtype) << " " << bits;
      ASSERT_TRUE(IsRepresentable(value, *FormatOf(dtype)));
      ++checked;
    }
  }
  EXPECT_GT(checked, 128000);
}

/// Values as NumPy and ml_dtypes decode them: sampled here, in full in tests/adapters/test_sdk.py.
TEST(Codec, TheLastCodesOfEachFormat) {
  const auto decode = [](DType dtype, uint16_t code) {
    std::byte bytes[2];
    std::memcpy(bytes, &code, 2);
    return DecodeElement(bytes, dtype);
  };
  EXPECT_EQ(decode(DType::kFloat16, 0x7bff), 65504);
  EXPECT_EQ(decode(DType::kFloat16, 0xfc00), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(decode(DType::kFloat16, 0x7c01)));
  EXPECT_EQ(decode(DType::kFloat16, 0x0001), 0x1p-24);
  EXPECT_EQ(decode(DType::kFloat8E4m3fn, 0x7e), 448);
  EXPECT_TRUE(std::isnan(decode(DType::kFloat8E4m3fn, 0x7f)));
  EXPECT_EQ(decode(DType::kFloat8E4m3fn, 0x81), -0x1p-9);
  EXPECT_EQ(decode(DType::kFloat8E5m2, 0x7b), 57344);
  EXPECT_TRUE(std::isinf(decode(DType::kFloat8E5m2, 0x7c)));
  EXPECT_TRUE(std::isnan(decode(DType::kFloat8E5m2, 0x7d)));
  EXPECT_EQ(decode(DType::kFloat8E4m3fnuz, 0x7f), 240);
  EXPECT_EQ(decode(DType::kFloat8E4m3fnuz, 0xff), -240);
  EXPECT_EQ(decode(DType::kFloat8E4m3fnuz, 0x01), 0x1p-10);
  EXPECT_EQ(decode(DType::kFloat8E4m3fnuz, 0x08), 0x1p-7);
  EXPECT_TRUE(std::isnan(decode(DType::kFloat8E4m3fnuz, 0x80)));
}

TEST(Codec, AFormatWithoutMinusZeroStoresItsOwnZeroAndNan) {
  const auto encode = [](double value) {
    std::byte byte{0x55};
    EncodeElement(value, DType::kFloat8E4m3fnuz, &byte);
    return std::to_integer<int>(byte);
  };
  EXPECT_EQ(encode(-0.0), 0);
  EXPECT_EQ(encode(std::nan("")), 0x80);
  EXPECT_EQ(encode(-std::nan("")), 0x80);
  EXPECT_EQ(encode(-0x1p-10), 0x81);
  const FloatFormat& format = *FormatOf(DType::kFloat8E4m3fnuz);
  EXPECT_TRUE(std::isnan(RoundTo(1e6, format)));
  EXPECT_EQ(RoundTo(1e6, format, Rounding::kTowardZero), 240);
  EXPECT_EQ(RoundTo(247.9, format), 240);
  EXPECT_TRUE(std::isnan(RoundTo(248, format))) << "half way to 256, which is even";
  EXPECT_FALSE(IsRepresentable(std::numeric_limits<double>::infinity(), format));
}

TEST(Ulp, TheDistanceOfTwoValuesIsTheSameFromBothSides) {
  EXPECT_EQ(UlpDistance(1.0, 1 + 0x1p-7, Bfloat16()), 1);
  const double below = 1 - 0x1p-8;  // the last value of the binade below
  EXPECT_EQ(UlpDistance(below, 1.0, Bfloat16()), 0.5);
  EXPECT_EQ(UlpDistance(1.0, below, Bfloat16()), 0.5);
  EXPECT_EQ(UlpDistance(0.0, -0.0, Binary32()), 0);
  EXPECT_EQ(UlpDistance(0, 0x1p-149, Binary32()), 1);
  EXPECT_EQ(UlpDistance(std::nan(""), std::nan(""), Binary32()), 0);
  EXPECT_TRUE(std::isinf(UlpDistance(1, std::nan(""), Binary32())));
  EXPECT_TRUE(std::isinf(UlpDistance(1, std::numeric_limits<double>::infinity(), Binary32())));
}

TEST(ToOdd, TheLastBitRemembersTheTail) {
  const double even = 1 + 0x1p-51, odd = 1 + 0x1p-52;
  EXPECT_EQ(ToOdd({even, 0}), even);
  EXPECT_EQ(ToOdd({even, 0x1p-80}), even + 0x1p-52);
  EXPECT_EQ(ToOdd({even, -0x1p-80}), even - 0x1p-52);
  EXPECT_EQ(ToOdd({-even, -0x1p-80}), -even - 0x1p-52);
  EXPECT_EQ(ToOdd({odd, 0x1p-80}), odd);
}

TEST(Formats, WhichHoldsWhich) {
  EXPECT_TRUE(Holds(Binary32(), Bfloat16()));
  EXPECT_TRUE(Holds(Binary16(), Float8E4m3fn()));
  EXPECT_TRUE(Holds(Tf32(), Binary16()));
  EXPECT_FALSE(Holds(Binary16(), Bfloat16()));
  EXPECT_FALSE(Holds(Bfloat16(), Binary16()));
  EXPECT_FALSE(Holds(Float8E5m2(), Float8E4m3fn()));
  EXPECT_EQ(&FormatOfBits(12), &FormatOfBits(12));
  EXPECT_EQ(FormatOfBits(24).max_finite, Binary32().max_finite);
  EXPECT_LT(FormatOfBits(24).SmallestSubnormal(), Binary32().SmallestSubnormal());
  for (const DType dtype : AllDTypes()) {
    ASSERT_EQ(FormatOf(dtype) != nullptr, IsFloating(dtype)) << Name(dtype);
    EXPECT_EQ(FormatOf(dtype), IsFloating(dtype) ? FindFormat(Name(dtype)) : nullptr);
  }
  EXPECT_EQ(Brief("bfloat16"), "bf16");
  EXPECT_EQ(Brief("uint8"), "u8");
  EXPECT_EQ(Brief("complex64"), "complex64");
}

TEST(Formats, RoundingsByName) {
  for (const auto& name : AllRoundingNames()) EXPECT_EQ(Name(*ParseRounding(name)), name);
  EXPECT_EQ(ParseRounding("up"), std::nullopt);
}

TEST(SignificantBits, CountsTheOddPart) {
  EXPECT_EQ(SignificantBits(0), 0);
  EXPECT_EQ(SignificantBits(8), 1);
  EXPECT_EQ(SignificantBits(0x1.02p5), 8);
  EXPECT_EQ(SignificantBits(0x1p-149), 1);
}

}  // namespace
}  // namespace ulpscope
