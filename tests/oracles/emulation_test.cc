// Each op's emulation, bit for bit, against an implementation in MPFR that shares no code with it.
#include <gtest/gtest.h>
#include <mpfr.h>

#include <memory>

#include "oracles/models.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"
#include "tests/support/models.h"

namespace ulpscope {
namespace {

using testing::Integers;
using testing::MakeStep;
using testing::Tensor;

/// Arithmetic in one format: MPFR at the format's precision, with its exponent range and gradual underflow.
class Machine {
 public:
  explicit Machine(const FloatFormat& format) : format_(format) {}

  double Fma(double a, double b, double c) const {
    return Run([&](mpfr_t r, mpfr_t x, mpfr_t y, mpfr_t z) { return mpfr_fma(r, x, y, z, MPFR_RNDN); }, a, b,
               c);
  }
  double Add(double a, double b) const {
    return Run([&](mpfr_t r, mpfr_t x, mpfr_t y, mpfr_t) { return mpfr_add(r, x, y, MPFR_RNDN); }, a, b);
  }
  double Sub(double a, double b) const {
    return Run([&](mpfr_t r, mpfr_t x, mpfr_t y, mpfr_t) { return mpfr_sub(r, x, y, MPFR_RNDN); }, a, b);
  }
  double Mul(double a, double b) const {
    return Run([&](mpfr_t r, mpfr_t x, mpfr_t y, mpfr_t) { return mpfr_mul(r, x, y, MPFR_RNDN); }, a, b);
  }
  double Div(double a, double b) const {
    return Run([&](mpfr_t r, mpfr_t x, mpfr_t y, mpfr_t) { return mpfr_div(r, x, y, MPFR_RNDN); }, a, b);
  }
  double Rsqrt(double a) const {
    return Run([&](mpfr_t r, mpfr_t x, mpfr_t, mpfr_t) { return mpfr_rec_sqrt(r, x, MPFR_RNDN); }, a);
  }
  double Round(double a) const {
    return Run([&](mpfr_t r, mpfr_t x, mpfr_t, mpfr_t) { return mpfr_set(r, x, MPFR_RNDN); }, a);
  }

 private:
  template <class F>
  double Run(F op, double a, double b = 0, double c = 0) const {
    mpfr_t r, x, y, z;
    mpfr_init2(r, format_.precision);
    mpfr_inits2(53, x, y, z, nullptr);
    mpfr_set_d(x, a, MPFR_RNDN);
    mpfr_set_d(y, b, MPFR_RNDN);
    mpfr_set_d(z, c, MPFR_RNDN);
    const auto emin = mpfr_get_emin(), emax = mpfr_get_emax();
    int ternary = op(r, x, y, z);
    mpfr_set_emin(format_.emin - format_.precision + 2);
    mpfr_set_emax(format_.emax + 1);
    ternary = mpfr_check_range(r, ternary, MPFR_RNDN);
    mpfr_subnormalize(r, ternary, MPFR_RNDN);
    const double value = mpfr_get_d(r, MPFR_RNDN);
    mpfr_set_emin(emin);
    mpfr_set_emax(emax);
    mpfr_clears(r, x, y, z, nullptr);
    return value;
  }
  FloatFormat format_;
};

/// A row of the candidate models as this file understands it.
struct EmulationRow {
  const char* acc;
  const char* mid;
};
constexpr EmulationRow kEmulationRows[] = {{"float32", "none"},
                                           {"float32", "bfloat16"},
                                           {"bfloat16", "none"},
                                           {"float16", "none"},
                                           {"float64", "float16"}};

class EmulationTest : public ::testing::TestWithParam<EmulationRow> {
 protected:
  PrecisionModel Model() const {
    PrecisionModel model;
    model.acc = testing::Acc(GetParam().acc);
    model.mid = testing::Mid(GetParam().mid);
    return model;
  }
  Machine Acc() const { return Machine(*FindFormat(GetParam().acc)); }
  /// The roundings after a sum or an inner step: MID, then the declared dtype.
  double Stored(double value, const FloatFormat& declared) const {
    if (std::string(GetParam().mid) != "none") value = Machine(*FindFormat(GetParam().mid)).Round(value);
    return Machine(declared).Round(value);
  }
  std::map<std::string, TensorData> Emulate(const Case& c,
                                            const std::map<std::string, TensorData>& in) const {
    auto values = EmulateProgram(c, in, Model(), "sequential");
    EXPECT_TRUE(values) << (values ? "" : values.error().Text());
    return values ? *values : std::map<std::string, TensorData>{};
  }
};
INSTANTIATE_TEST_SUITE_P(Models, EmulationTest, ::testing::ValuesIn(kEmulationRows), [](const auto& row) {
  return std::string(row.param.acc) + "_mid_" + row.param.mid;
});

TEST_P(EmulationTest, Matmul) {
  const Case c = testing::MatmulCase(DType::kBfloat16, DType::kBfloat16, 6, 33, 5);
  const auto in = testing::NormalInputs(c, 11);
  const auto values = Emulate(c, in);
  for (int64_t i = 0; i < 30; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < 33; ++k)
      sum = Acc().Fma(in.at("a").At(i / 5 * 33 + k), in.at("b").At(k * 5 + i % 5), sum);
    ASSERT_EQ(values.at("product").At(i), Stored(sum, Bfloat16())) << i;
  }
}

TEST_P(EmulationTest, MatmulWithRoundedOperandsAndProducts) {
  const Case c = testing::MatmulCase(DType::kFloat32, DType::kFloat32, 4, 21, 3);
  const auto in = testing::NormalInputs(c, 12);
  PrecisionModel model = Model();
  model.in = testing::Ins({{"b", "bfloat16_rne"}});
  model.prod = testing::Prod("float16");
  const auto values = EmulateProgram(c, in, model, "reversed");
  ASSERT_TRUE(values);
  for (int64_t i = 0; i < 12; ++i) {
    double sum = 0;
    for (int64_t k = 20; k >= 0; --k) {
      const double b = Machine(Bfloat16()).Round(in.at("b").At(k * 3 + i % 3));
      sum = Acc().Add(sum, Machine(Binary16()).Mul(in.at("a").At(i / 3 * 21 + k), b));
    }
    ASSERT_EQ(values->at("product").At(i), Stored(sum, Binary32())) << i;
  }
}

TEST_P(EmulationTest, LinearAddmmAndGradients) {
  Case c;
  c.tensors = {Tensor("x", DType::kBfloat16, {9, 5}, true), Tensor("w", DType::kBfloat16, {4, 5}, true),
               Tensor("b", DType::kBfloat16, {4}, true), Tensor("g", DType::kBfloat16, {9, 4}),
               Tensor("m", DType::kFloat32, {4, 5})};
  c.program = {
      MakeStep("linear", {"x", "w", "b"}, "y"),
      MakeStep("backward", {"y"}, "", {{"grad", testing::Text("g")}}),
      MakeStep("transpose", {"g"}, "gt", {{"dim0", testing::Integer(0)}, {"dim1", testing::Integer(1)}}),
      MakeStep("addmm", {"m", "gt", "x"}, "fused")};
  c.observe = {"y", "w.grad", "x.grad", "b.grad", "fused"};
  const auto in = testing::NormalInputs(c, 13);
  const auto v = Emulate(c, in);
  const Machine acc = Acc();
  const auto x = [&](int64_t n, int64_t k) { return in.at("x").At(n * 5 + k); };
  const auto g = [&](int64_t n, int64_t m) { return in.at("g").At(n * 4 + m); };
  for (int64_t i = 0; i < 36; ++i) {
    double sum = acc.Round(in.at("b").At(i % 4));
    for (int64_t k = 0; k < 5; ++k) sum = acc.Fma(x(i / 4, k), in.at("w").At(i % 4 * 5 + k), sum);
    ASSERT_EQ(v.at("y").At(i), Stored(sum, Bfloat16()));
  }
  for (int64_t i = 0; i < 20; ++i) {
    double weight = 0, fused = acc.Round(in.at("m").At(i));
    for (int64_t n = 0; n < 9; ++n) {
      weight = acc.Fma(x(n, i % 5), g(n, i / 5), weight);
      fused = acc.Fma(g(n, i / 5), x(n, i % 5), fused);
    }
    ASSERT_EQ(v.at("w.grad").At(i), Stored(weight, Bfloat16()));
    ASSERT_EQ(v.at("fused").At(i), Stored(fused, Binary32()));
  }
  for (int64_t i = 0; i < 45; ++i) {
    double sum = 0;
    for (int64_t m = 0; m < 4; ++m) sum = acc.Fma(g(i / 5, m), in.at("w").At(m * 5 + i % 5), sum);
    ASSERT_EQ(v.at("x.grad").At(i), Stored(sum, Bfloat16()));
  }
  for (int64_t m = 0; m < 4; ++m) {
    double sum = 0;
    for (int64_t n = 0; n < 9; ++n) sum = acc.Add(sum, g(n, m));
    ASSERT_EQ(v.at("b.grad").At(m), Stored(sum, Bfloat16()));
  }
}

TEST_P(EmulationTest, PointwiseAndSums) {
  Case c;
  c.tensors = {Tensor("a", DType::kBfloat16, {40}), Tensor("b", DType::kFloat32, {40})};
  c.program = {MakeStep("add", {"a", "b"}, "s"),
               MakeStep("mul", {"a", "a"}, "p"),
               MakeStep("div", {"a", "b"}, "q"),
               MakeStep("sub", {"p", "s"}, "d"),
               MakeStep("cast", {"b"}, "n", {{"dtype", testing::Text("float16")}}),
               MakeStep("sum", {"a"}, "r")};
  c.observe = {"s", "p", "q", "d", "n", "r"};
  const auto in = testing::NormalInputs(c, 14);
  const auto v = Emulate(c, in);
  const Machine f32(Binary32()), bf16(Bfloat16());
  double sum = 0;
  for (int64_t i = 0; i < 40; ++i) {
    const double a = in.at("a").At(i), b = in.at("b").At(i);
    ASSERT_EQ(v.at("s").At(i), f32.Add(a, b));
    ASSERT_EQ(v.at("p").At(i), bf16.Mul(a, a));
    ASSERT_EQ(v.at("q").At(i), f32.Div(a, b));
    ASSERT_EQ(v.at("d").At(i), f32.Sub(bf16.Mul(a, a), f32.Add(a, b)));
    ASSERT_EQ(v.at("n").At(i), Machine(Binary16()).Round(b));
    sum = Acc().Add(sum, a);
  }
  ASSERT_EQ(v.at("r").At(0), Stored(sum, Bfloat16()));
}

TEST_P(EmulationTest, LayerNorm) {
  constexpr int64_t kRows2 = 3, kLength = 24;
  Case c;
  c.tensors = {Tensor("x", DType::kBfloat16, {kRows2, kLength}), Tensor("w", DType::kFloat32, {kLength}),
               Tensor("b", DType::kFloat32, {kLength})};
  c.program = {MakeStep("layer_norm", {"x", "w", "b"}, "y", {{"normalized_shape", Integers({kLength})}})};
  c.observe = {"y"};
  const auto in = testing::NormalInputs(c, 15);
  const auto v = Emulate(c, in);
  const Machine m = Acc();
  const double n = static_cast<double>(kLength);
  for (int64_t r = 0; r < kRows2; ++r) {
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < kLength; ++j) sum = m.Add(sum, in.at("x").At(r * kLength + j));
    const double mean = m.Div(sum, n);
    for (int64_t j = 0; j < kLength; ++j) {
      const double d = m.Sub(in.at("x").At(r * kLength + j), mean);
      squares = m.Add(squares, m.Mul(d, d));
    }
    const double rstd = m.Rsqrt(m.Add(m.Div(squares, n), 1e-5));
    for (int64_t j = 0; j < kLength; ++j) {
      const double normalized = m.Mul(m.Sub(in.at("x").At(r * kLength + j), mean), rstd);
      const double y = m.Add(m.Mul(normalized, in.at("w").At(j)), in.at("b").At(j));
      ASSERT_EQ(v.at("y").At(r * kLength + j), Stored(y, Bfloat16())) << r << " " << j;
    }
  }
}

}  // namespace
}  // namespace ulpscope
