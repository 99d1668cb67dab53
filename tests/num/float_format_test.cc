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
}

TEST(Codec, EverySixteenAndEightBitPatternRoundTrips) {
  int64_t checked = 0;
  for (const DType dtype : {DType::kBfloat16, DType::kFloat16, DType::kFloat8E4m3fn, DType::kFloat8E5m2}) {
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

TEST(SignificantBits, CountsTheOddPart) {
  EXPECT_EQ(SignificantBits(0), 0);
  EXPECT_EQ(SignificantBits(8), 1);
  EXPECT_EQ(SignificantBits(0x1.02p5), 8);
  EXPECT_EQ(SignificantBits(0x1p-149), 1);
}

}  // namespace
}  // namespace ulpscope
