// Functions against MPFR: exact enclosures, pairs of doubles, intervals, 16-bit tables, special values.
#include <gmpxx.h>
#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "oracles/functions/enclose.h"
#include "oracles/functions/exact.h"
#include "oracles/functions/pair.h"
#include "tests/support/draws.h"

namespace ulpscope {
namespace {

using testing::Draws;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void Mpfr(NodeKind kind, mpfr_t out, const mpfr_t x, mpfr_rnd_t mode) {
  switch (kind) {
    case NodeKind::kExp:
      mpfr_exp(out, x, mode);
      return;
    case NodeKind::kExpm1:
      mpfr_expm1(out, x, mode);
      return;
    case NodeKind::kLog:
      mpfr_log(out, x, mode);
      return;
    case NodeKind::kLog1p:
      mpfr_log1p(out, x, mode);
      return;
    case NodeKind::kSin:
      mpfr_sin(out, x, mode);
      return;
    case NodeKind::kCos:
      mpfr_cos(out, x, mode);
      return;
    case NodeKind::kTanh:
      mpfr_tanh(out, x, mode);
      return;
    case NodeKind::kErf:
      mpfr_erf(out, x, mode);
      return;
    case NodeKind::kErfc:
      mpfr_erfc(out, x, mode);
      return;
    default:
      std::abort();
  }
}

struct Row {
  NodeKind kind;
  const char* name;
  double least, most;  ///< of arguments drawn evenly
};
constexpr Row kFunctionRows[] = {{NodeKind::kExp, "exp", -745, 709}, {NodeKind::kExpm1, "expm1", -40, 709},
                                 {NodeKind::kLog, "log", 0, 1e6},    {NodeKind::kLog1p, "log1p", -1, 1e3},
                                 {NodeKind::kSin, "sin", -1e6, 1e6}, {NodeKind::kCos, "cos", -1e6, 1e6},
                                 {NodeKind::kTanh, "tanh", -20, 20}, {NodeKind::kErf, "erf", -6.5, 6.5},
                                 {NodeKind::kErfc, "erfc", -6, 26.5}};

/// A deterministic stream of arguments: even over the row's range, and of every magnitude.
class Arguments {
 public:
  explicit Arguments(const Row& row) : row_(row) {}
  double Next() {
    const double even = row_.least + (row_.most - row_.least) * Unit();
    if (count_++ % 2 == 0) return even;
    const double fraction = 1 + Unit();  // named, so that every compiler draws in the same order
    const double scaled = std::ldexp(fraction, static_cast<int>(Unit() * 60) - 50);
    const double magnitude = scaled > row_.most ? even : scaled;
    return Unit() < 0.5 && -magnitude > row_.least && -magnitude <= row_.most ? -magnitude : magnitude;
  }

 private:
  double Unit() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 11) * 0x1p-53;
  }
  Row row_;
  uint64_t state_ = 20240607;
  int64_t count_ = 0;
};

class MpfrNumber {
 public:
  explicit MpfrNumber(mpfr_prec_t bits) { mpfr_init2(v, bits); }
  MpfrNumber(const MpfrNumber&) = delete;
  MpfrNumber& operator=(const MpfrNumber&) = delete;
  ~MpfrNumber() { mpfr_clear(v); }
  mpfr_t v;
};

/// Exactly the dyadic number.
void Set(MpfrNumber* out, const Dyadic& value) {
  const mpz_class m(value.m.str());
  mpfr_set_prec(out->v, static_cast<mpfr_prec_t>(std::max<int64_t>(value.bits(), 2)));
  mpfr_set_z_2exp(out->v, m.get_mpz_t(), value.e, MPFR_RNDN);
}

/// `wide` rounded once into a format, gradual underflow included.
double RoundWide(const MpfrNumber& wide, const FloatFormat& format) {
  MpfrNumber out(format.precision);
  const auto emin = mpfr_get_emin(), emax = mpfr_get_emax();
  mpfr_set_emin(format.emin - format.precision + 2);
  mpfr_set_emax(format.emax + 1);
  int ternary = mpfr_set(out.v, wide.v, MPFR_RNDN);
  ternary = mpfr_check_range(out.v, ternary, MPFR_RNDN);
  mpfr_subnormalize(out.v, ternary, MPFR_RNDN);
  const double value = mpfr_get_d(out.v, MPFR_RNDN);
  mpfr_set_emin(emin);
  mpfr_set_emax(emax);
  return value;
}

/// 300 bits decide every rounding that the arguments here meet.
void Wide(NodeKind kind, double x, MpfrNumber* wide) {
  MpfrNumber argument(53);
  mpfr_set_d(argument.v, x, MPFR_RNDN);
  Mpfr(kind, wide->v, argument.v, MPFR_RNDN);
}

double Rounded(NodeKind kind, double x, const FloatFormat& format) {
  MpfrNumber wide(300);
  Wide(kind, x, &wide);
  return RoundWide(wide, format);
}

class EveryFunction : public ::testing::TestWithParam<Row> {};
INSTANTIATE_TEST_SUITE_P(Functions, EveryFunction, ::testing::ValuesIn(kFunctionRows),
                         [](const auto& row) { return std::string(row.param.name); });

/// 1 when the enclosure at `precision` holds MPFR's value and is as narrow as promised.
int CheckEnclosure(NodeKind kind, double x, int64_t precision) {
  const Real value = ApplyFunction(kind, Real::From(x), precision);
  if (value.is_domain()) return 0;
  MpfrNumber argument(53), truth(static_cast<mpfr_prec_t>(2 * precision + 64)), low(2), high(2);
  mpfr_set_d(argument.v, x, MPFR_RNDN);
  Mpfr(kind, truth.v, argument.v, MPFR_RNDN);
  Set(&low, value.lo());
  Set(&high, value.hi());
  EXPECT_LE(mpfr_cmp(low.v, truth.v), 0) << x << " at " << precision;
  EXPECT_GE(mpfr_cmp(high.v, truth.v), 0) << x << " at " << precision;
  if (value.is_point()) return 1;
  const Dyadic width = value.hi() - value.lo();
  const int64_t size = value.hi().e + value.hi().bits();
  EXPECT_LE(width.e + width.bits(), size - precision + 6) << x << " at " << precision;
  return 1;
}

TEST_P(EveryFunction, EnclosesMpfrTightly) {
  Arguments arguments(GetParam());
  int checked = 0;
  for (int i = 0; i < Draws(1500); ++i) checked += CheckEnclosure(GetParam().kind, arguments.Next(), 256);
  for (int i = 0; i < Draws(60); ++i) checked += CheckEnclosure(GetParam().kind, arguments.Next(), 1024);
  for (int i = 0; i < Draws(6); ++i) checked += CheckEnclosure(GetParam().kind, arguments.Next(), 4096);
  // The smallest and largest magnitudes, and where results come near zero.
  for (const double x : {0x1p-1074, -0x1p-1074, 0x1p-1022, 0x1.8p-300, 1 + 0x1p-52, 1 - 0x1p-53,
                         0x1.921fb54442d18p1, 0x1.921fb54442d18p0, 0x1.6ac5b262ca1ffp849}) {
    if (x < GetParam().least ||
        (x > GetParam().most && GetParam().kind != NodeKind::kSin && GetParam().kind != NodeKind::kCos))
      continue;
    checked += CheckEnclosure(GetParam().kind, x, 256);
  }
  EXPECT_GE(checked, Draws(1500) + Draws(60) + Draws(6));
}

TEST_P(EveryFunction, PairsAreWithinTheirBoundAndRoundOnce) {
  Arguments arguments(GetParam());
  // MPFR's erf and erfc are slow.
  const int64_t count =
      Draws(GetParam().kind == NodeKind::kErf || GetParam().kind == NodeKind::kErfc ? 2000 : 20000);
  double worst = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double x = arguments.Next();
    const TwoDoubles value = PairFunction(GetParam().kind, {.hi = x, .lo = 0});
    MpfrNumber truth(300);
    Wide(GetParam().kind, x, &truth);
    ASSERT_EQ(value.hi, mpfr_get_d(truth.v, MPFR_RNDN)) << x;
    for (const FloatFormat* format : {&Binary32(), &Bfloat16(), &Binary16()})
      ASSERT_EQ(RoundTo(value, *format), RoundWide(truth, *format)) << x << " " << format->name;
    if (std::fabs(value.hi) < 0x1p-960 || !std::isfinite(value.hi)) continue;
    MpfrNumber off(300);
    mpfr_sub_d(off.v, truth.v, value.hi, MPFR_RNDN);
    mpfr_sub_d(off.v, off.v, value.lo, MPFR_RNDN);
    mpfr_div(off.v, off.v, truth.v, MPFR_RNDN);
    worst = std::max(worst, std::fabs(mpfr_get_d(off.v, MPFR_RNDN)));
  }
  EXPECT_LT(worst, kFunctionError);
  RecordProperty("worst_log2", std::to_string(std::log2(worst)));
}

/// Every stored value within FunctionSlack lies inside; the interval is not wider than the slack requires.
TEST_P(EveryFunction, IntervalsHoldTheValueAndItsSlack) {
  Arguments arguments(GetParam());
  PlanNode node;
  node.kind = GetParam().kind;
  int checked = 0;
  for (int i = 0; i < Draws(100000); ++i) {
    const double x = arguments.Next(),
                 y = std::max(GetParam().least, x) + (i % 3 == 0 ? 0 : std::fabs(x) * 0x1p-20);
    const Interval image = FunctionImage(GetParam().kind, {.lo = x, .hi = y});
    for (const double inside : {x, y, x + (y - x) / 2}) {
      const TwoDoubles value = PairFunction(GetParam().kind, {.hi = inside, .lo = 0});
      ASSERT_LE(image.lo, value.hi) << inside;
      ASSERT_GE(image.hi, value.hi) << inside;
    }
    ++checked;
    if (x != y) continue;
    const double value = PairFunction(GetParam().kind, {.hi = x, .lo = 0}).hi;
    ASSERT_LE(image.hi - image.lo, 2 * Ulp(value, Binary64()));
    const Interval slack = WithSlack(node, image);
    if (std::fabs(value) < 0x1p-120 || std::fabs(value) > 0x1p120 || image.lo == image.hi) continue;
    // Next to a power of two the units of the two sides differ by a factor of two. 1 - erf is off by as much
    // as erf, where it is not small.
    const double reach = GetParam().kind == NodeKind::kErfc && value >= 0.4
                             ? 2 * Ulp(value, Binary32()) + 8 * Ulp(1 - value, Binary32())
                             : FunctionSlack(GetParam().kind) * Ulp(value, Binary32());
    ASSERT_LE(slack.lo, value - 0.49 * reach) << x;
    ASSERT_GE(slack.hi, value + 0.49 * reach) << x;
    ASSERT_LE(slack.hi - slack.lo, 3.1 * reach) << x;
  }
  EXPECT_EQ(checked, Draws(100000));
}

struct Special {
  NodeKind kind;
  double x, value;
};
constexpr Special kSpecials[] = {
    {NodeKind::kExp, 0, 1},        {NodeKind::kExp, kInf, kInf},  {NodeKind::kExp, -kInf, 0},
    {NodeKind::kExp, kNan, kNan},  {NodeKind::kExp, 1e300, kInf}, {NodeKind::kExp, -1e300, 0},
    {NodeKind::kExpm1, 0, 0},      {NodeKind::kExpm1, -kInf, -1}, {NodeKind::kExpm1, kInf, kInf},
    {NodeKind::kLog, 1, 0},        {NodeKind::kLog, 0, -kInf},    {NodeKind::kLog, -1, kNan},
    {NodeKind::kLog, kInf, kInf},  {NodeKind::kLog, -kInf, kNan}, {NodeKind::kLog1p, 0, 0},
    {NodeKind::kLog1p, -1, -kInf}, {NodeKind::kLog1p, -2, kNan},  {NodeKind::kLog1p, kInf, kInf},
    {NodeKind::kSin, 0, 0},        {NodeKind::kSin, kInf, kNan},  {NodeKind::kSin, -kInf, kNan},
    {NodeKind::kCos, 0, 1},        {NodeKind::kCos, kInf, kNan},  {NodeKind::kTanh, 0, 0},
    {NodeKind::kTanh, kInf, 1},    {NodeKind::kTanh, -kInf, -1},  {NodeKind::kTanh, 1e300, 1},
    {NodeKind::kErf, 0, 0},        {NodeKind::kErf, kInf, 1},     {NodeKind::kErf, -kInf, -1},
    {NodeKind::kErf, 1e200, 1},    {NodeKind::kErfc, 0, 1},       {NodeKind::kErfc, kInf, 0},
    {NodeKind::kErfc, -kInf, 2},   {NodeKind::kErfc, 1e200, 0}};

TEST(Functions, SpecialValuesFollowIeee) {
  for (const Special& row : kSpecials) {
    const Reference exact = ApplyFunction(row.kind, Real::From(row.x), 256).ToReference();
    const TwoDoubles pair = PairFunction(row.kind, {.hi = row.x, .lo = 0});
    for (const double value : {exact.hi, pair.hi})
      EXPECT_TRUE(std::isnan(row.value) ? std::isnan(value) : value == row.value)
          << static_cast<int>(row.kind) << " " << row.x << " gives " << value;
    EXPECT_NE(exact.kind, ReferenceKind::kUndecided) << row.x;
    // Special results of finite arguments are exact only at the exact cases.
    if (row.x == 0 || (row.kind == NodeKind::kLog && row.x == 1)) {
      EXPECT_EQ(exact.kind, std::isfinite(row.value) ? ReferenceKind::kExact : ReferenceKind::kDomain);
    }
    const Interval image = FunctionImage(row.kind, {.lo = row.x, .hi = row.x});
    EXPECT_TRUE(std::isnan(row.value) ? image.lo == -kInf && image.hi == kInf
                                      : image.lo <= row.value && row.value <= image.hi)
        << static_cast<int>(row.kind) << " " << row.x;
  }
}

TEST(Functions, HugeAnglesAreReducedExactly) {
  // 0x1.6ac5b262ca1ffp849 is the binary64 number nearest to a multiple of pi/2 (Muller, Elementary Functions,
  // table 11.1).
  for (const double x :
       {0x1p100, 0x1.fffffffffffffp1023, 0x1.6ac5b262ca1ffp849, 1e22, 0x1.921fb54442d18p19}) {
    for (const NodeKind kind : {NodeKind::kSin, NodeKind::kCos})
      EXPECT_EQ(PairFunction(kind, {.hi = x, .lo = 0}).hi, Rounded(kind, x, Binary64())) << x;
  }
}

TEST(Functions, WhatIsTooWideIsUndecided) {
  const Real wide = Real::Between(Dyadic::From(-0.5), Dyadic::From(0.5));
  EXPECT_TRUE(ApplyFunction(NodeKind::kLog, wide, 256).is_undecided());
  EXPECT_TRUE(Divide(Real::From(1.0), wide, 256).is_undecided());
  EXPECT_EQ(Divide(Real::From(1.0), wide, 256).ToReference().kind, ReferenceKind::kUndecided);
  EXPECT_TRUE(Multiply(wide, Real::From(kInf), 256).is_undecided());
  EXPECT_EQ(ApplyFunction(NodeKind::kExp, wide, 256).ToReference().kind, ReferenceKind::kUndecided);
}

/// All 65,536 arguments of both 16-bit formats: the tables' value rounds to the format as MPFR's does.
TEST_P(EveryFunction, TablesOf16BitArgumentsAgreeWithMpfr) {
  int64_t checked = 0;
  for (const DType dtype : {DType::kBfloat16, DType::kFloat16}) {
    const FloatFormat& format = *FormatOf(dtype);
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const auto pattern = static_cast<uint16_t>(bits);
      std::byte bytes[2];
      std::memcpy(bytes, &pattern, 2);
      const double x = DecodeElement(bytes, dtype);
      ++checked;
      const Reference reference = TabulatedFunction(GetParam().kind, Real::From(x), 256).ToReference();
      const double mine = RoundTo(TwoDoubles{.hi = reference.hi, .lo = reference.lo}, format);
      const double theirs = Rounded(GetParam().kind, x, format);
      ASSERT_TRUE(mine == theirs || (std::isnan(mine) && std::isnan(theirs)))
          << x << ": " << mine << " and " << theirs;
      ASSERT_NE(reference.kind, ReferenceKind::kUndecided) << x;
    }
  }
  EXPECT_EQ(checked, 2 * 65536);
}

/// The approximation's values lie in its image; its error is within its bound, and comes near the bound.
TEST(Functions, TheFastExponentialErrsByWhatIsSaid) {
  double most = 0;
  size_t checked = 0;
  for (float x = -87; x < 88; x += 0.00137F, ++checked) {
    const double fast = PairFunction(NodeKind::kFastExp, {.hi = x, .lo = 0}).hi;
    const double exact = PairFunction(NodeKind::kExp, {.hi = x, .lo = 0}).hi;
    const Interval image = FunctionImage(NodeKind::kFastExp, {.lo = x, .hi = x});
    EXPECT_LE(image.lo, fast) << x;
    EXPECT_GE(image.hi, fast) << x;
    most = std::max(most, std::fabs(fast / exact - 1));
  }
  EXPECT_GT(checked, 100000U);
  EXPECT_LE(most, kFastExpError);
  EXPECT_GE(most, 0.9 * kFastExpError);
  EXPECT_EQ(PairFunction(NodeKind::kFastExp, {.hi = -88, .lo = 0}).hi, 0);
  EXPECT_EQ(PairFunction(NodeKind::kFastExp, {.hi = 89, .lo = 0}).hi, kInf);
}

TEST(Functions, ConstantsAgreeWithMpfr) {
  for (const Irrational constant : {Irrational::kSqrtHalf, Irrational::kSqrtTwoOverPi}) {
    MpfrNumber truth(600), low(2), high(2);
    mpfr_const_pi(truth.v, MPFR_RNDN);
    mpfr_ui_div(truth.v, 2, truth.v, MPFR_RNDN);
    if (constant == Irrational::kSqrtHalf) mpfr_set_d(truth.v, 0.5, MPFR_RNDN);
    mpfr_sqrt(truth.v, truth.v, MPFR_RNDN);
    const Real value = ConstantOf(constant, 512);
    Set(&low, value.lo());
    Set(&high, value.hi());
    EXPECT_LE(mpfr_cmp(low.v, truth.v), 0);
    EXPECT_GE(mpfr_cmp(high.v, truth.v), 0);
    EXPECT_EQ(PairConstant(constant).hi, mpfr_get_d(truth.v, MPFR_RNDN));
  }
}

}  // namespace
}  // namespace ulpscope
