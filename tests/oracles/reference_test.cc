// The exact oracle against GMP rationals and MPFR: two libraries that share no code with it.
#include <gmpxx.h>
#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "oracles/expand.h"
#include "oracles/oracle.h"
#include "tests/support/big.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using testing::Big;
using testing::Integers;
using testing::MakeStep;
using testing::Tensor;

mpq_class Q(double value) { return mpq_class(value); }

std::vector<int64_t> All(int64_t count) {
  std::vector<int64_t> elements(static_cast<size_t>(count));
  std::iota(elements.begin(), elements.end(), 0);
  return elements;
}

/// Compares every element of `value` with `exact`; returns how many were compared.
int64_t Compare(const Case& c, const std::map<std::string, TensorData>& inputs, const std::string& value,
                const std::function<mpq_class(int64_t)>& exact) {
  const auto oracle = OpenCaseOracle(c, inputs);
  EXPECT_TRUE(oracle);
  const auto shape = (*oracle)->Describe(value);
  EXPECT_TRUE(shape) << (shape ? "" : shape.error().Text());
  if (!shape) return 0;
  const auto elements = All(ElementCount(shape->shape));
  const auto references = (*oracle)->References(value, elements);
  int64_t compared = 0;
  for (const int64_t i : elements) {
    const Reference& reference = references[static_cast<size_t>(i)];
    const mpq_class off = exact(i) - Q(reference.hi) - Q(reference.lo);
    if (reference.kind == ReferenceKind::kExact) {
      EXPECT_EQ(off, 0) << value << "[" << i << "]";
    } else {
      EXPECT_TRUE(reference.kind == ReferenceKind::kWide || reference.kind == ReferenceKind::kCertified)
          << value << "[" << i << "]";
      EXPECT_LE(abs(off), Q(reference.err)) << value << "[" << i << "]";
    }
    // hi is the exact value rounded to nearest: no neighbour is nearer.
    EXPECT_LE(abs(exact(i) - Q(reference.hi)), abs(exact(i) - Q(std::nextafter(reference.hi, HUGE_VAL))));
    EXPECT_LE(abs(exact(i) - Q(reference.hi)), abs(exact(i) - Q(std::nextafter(reference.hi, -HUGE_VAL))));
    ++compared;
  }
  return compared;
}

class EveryDtype : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, EveryDtype,
                         ::testing::Values(DType::kFloat64, DType::kFloat32, DType::kBfloat16,
                                           DType::kFloat16),
                         [](const auto& dtype) { return std::string(Name(dtype.param)); });

TEST_P(EveryDtype, MatmulIsExact) {
  const Case c = testing::MatmulCase(GetParam(), GetParam(), 5, 37, 6);
  const auto in = testing::NormalInputs(c, 3);
  const auto exact = [&](int64_t i) {
    mpq_class sum = 0;
    for (int64_t k = 0; k < 37; ++k)
      sum += Q(in.at("a").At(i / 6 * 37 + k)) * Q(in.at("b").At(k * 6 + i % 6));
    return sum;
  };
  EXPECT_EQ(Compare(c, in, "product", exact), 30);
}

TEST_P(EveryDtype, LinearAndItsGradientsAreExact) {
  Case c;
  c.tensors = {Tensor("x", GetParam(), {5, 7}, true), Tensor("w", GetParam(), {4, 7}, true),
               Tensor("b", GetParam(), {4}, true), Tensor("g", GetParam(), {5, 4})};
  c.program = {MakeStep("linear", {"x", "w", "b"}, "y"),
               MakeStep("backward", {"y"}, "", {{"grad", testing::Text("g")}})};
  c.observe = {"y", "x.grad", "w.grad", "b.grad"};
  const auto in = testing::NormalInputs(c, 4);
  const auto x = [&](int64_t n, int64_t k) { return Q(in.at("x").At(n * 7 + k)); };
  const auto w = [&](int64_t m, int64_t k) { return Q(in.at("w").At(m * 7 + k)); };
  const auto g = [&](int64_t n, int64_t m) { return Q(in.at("g").At(n * 4 + m)); };
  EXPECT_EQ(Compare(c, in, "y",
                    [&](int64_t i) {
                      mpq_class sum = Q(in.at("b").At(i % 4));
                      for (int64_t k = 0; k < 7; ++k) sum += x(i / 4, k) * w(i % 4, k);
                      return sum;
                    }),
            20);
  EXPECT_EQ(Compare(c, in, "x.grad",
                    [&](int64_t i) {
                      mpq_class sum = 0;
                      for (int64_t m = 0; m < 4; ++m) sum += g(i / 7, m) * w(m, i % 7);
                      return sum;
                    }),
            35);
  EXPECT_EQ(Compare(c, in, "w.grad",
                    [&](int64_t i) {
                      mpq_class sum = 0;
                      for (int64_t n = 0; n < 5; ++n) sum += g(n, i / 7) * x(n, i % 7);
                      return sum;
                    }),
            28);
  EXPECT_EQ(Compare(c, in, "b.grad",
                    [&](int64_t i) {
                      mpq_class sum = 0;
                      for (int64_t n = 0; n < 5; ++n) sum += g(n, i);
                      return sum;
                    }),
            4);
}

TEST(Reference, AShardedLinearComputesInItsComputeDtype) {
  Case c;
  c.tensors = {Tensor("x", DType::kFloat32, {5, 7}), Tensor("w", DType::kFloat32, {4, 7}, true),
               Tensor("g", DType::kBfloat16, {5, 4})};
  c.program = {MakeStep("fsdp_linear", {"x", "w"}, "y", {{"compute_dtype", testing::Text("bfloat16")}}),
               MakeStep("backward", {"y"}, "", {{"grad", testing::Text("g")}})};
  c.observe = {"y", "w.grad"};
  const auto in = testing::NormalInputs(c, 4);
  EXPECT_EQ(Compare(c, in, "y",
                    [&](int64_t i) {
                      mpq_class sum = 0;
                      for (int64_t k = 0; k < 7; ++k)
                        sum += Q(in.at("x").At(i / 4 * 7 + k)) * Q(in.at("w").At(i % 4 * 7 + k));
                      return sum;
                    }),
            20);
  EXPECT_EQ(Compare(c, in, "w.grad",
                    [&](int64_t i) {
                      mpq_class sum = 0;
                      for (int64_t n = 0; n < 5; ++n)
                        sum += Q(in.at("g").At(n * 4 + i / 7)) * Q(in.at("x").At(n * 7 + i % 7));
                      return sum;
                    }),
            28);
  const auto plan = Lower(c);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->nodes[static_cast<size_t>(plan->values.at("y"))].dtype, DType::kBfloat16);
  EXPECT_EQ(plan->nodes[static_cast<size_t>(plan->values.at("w.grad"))].dtype, DType::kFloat32);
}

TEST_P(EveryDtype, PointwiseSumsAndBroadcastingAreExact) {
  Case c;
  c.tensors = {Tensor("a", GetParam(), {3, 1, 4}), Tensor("b", GetParam(), {2, 4})};
  c.program = {
      MakeStep("add", {"a", "b"}, "s"),
      MakeStep("mul", {"s", "b"}, "p"),
      MakeStep("sub", {"p", "a"}, "d"),
      MakeStep("sum", {"d"}, "r", {{"dim", Integers({1, 2})}}),
      MakeStep("mean", {"d"}, "mean"),
      MakeStep("div", {"a", "b"}, "q"),
      MakeStep("transpose", {"d"}, "t", {{"dim0", testing::Integer(0)}, {"dim1", testing::Integer(2)}})};
  c.observe = {"s", "p", "d", "r", "mean", "q", "t"};
  const auto in = testing::NormalInputs(c, 5);
  const auto a = [&](int64_t i) { return Q(in.at("a").At(i / 8 * 4 + i % 4)); };
  const auto b = [&](int64_t i) { return Q(in.at("b").At(i % 8)); };
  const auto d = [&](int64_t i) { return mpq_class((a(i) + b(i)) * b(i) - a(i)); };
  EXPECT_EQ(Compare(c, in, "s", [&](int64_t i) { return mpq_class(a(i) + b(i)); }), 24);
  EXPECT_EQ(Compare(c, in, "p", [&](int64_t i) { return mpq_class((a(i) + b(i)) * b(i)); }), 24);
  EXPECT_EQ(Compare(c, in, "d", d), 24);
  EXPECT_EQ(Compare(c, in, "q", [&](int64_t i) { return mpq_class(a(i) / b(i)); }), 24);
  EXPECT_EQ(Compare(c, in, "t", [&](int64_t i) { return d(i % 3 * 8 + i / 3 % 2 * 4 + i / 6); }), 24);
  EXPECT_EQ(Compare(c, in, "r",
                    [&](int64_t i) {
                      mpq_class sum = 0;
                      for (int64_t j = 0; j < 8; ++j) sum += d(i * 8 + j);
                      return sum;
                    }),
            3);
  EXPECT_EQ(Compare(c, in, "mean",
                    [&](int64_t) {
                      mpq_class sum = 0;
                      for (int64_t j = 0; j < 24; ++j) sum += d(j);
                      return mpq_class(sum / 24);
                    }),
            1);
}

TEST(Reference, CastsRoundOnceAndDownstreamSeesIt) {
  Case c;
  c.tensors = {Tensor("a", DType::kFloat32, {200}), Tensor("b", DType::kFloat32, {200})};
  c.program = {
      MakeStep("mul", {"a", "b"}, "p"), MakeStep("cast", {"p"}, "n", {{"dtype", testing::Text("bfloat16")}}),
      MakeStep("cast", {"n"}, "w", {{"dtype", testing::Text("float32")}}), MakeStep("add", {"w", "a"}, "r")};
  c.observe = {"n", "r"};
  const auto in = testing::NormalInputs(c, 6);
  const auto narrow = [&](int64_t i) {
    // mpfr rounds the exact 48-bit product to 8 bits: bfloat16 away from its subnormals.
    mpfr_t product;
    mpfr_init2(product, 8);
    mpfr_set_d(product, in.at("a").At(i), MPFR_RNDN);
    mpfr_t x, y;
    mpfr_init2(x, 53);
    mpfr_init2(y, 53);
    mpfr_set_d(x, in.at("a").At(i), MPFR_RNDN);
    mpfr_set_d(y, in.at("b").At(i), MPFR_RNDN);
    mpfr_mul(product, x, y, MPFR_RNDN);
    const double value = mpfr_get_d(product, MPFR_RNDN);
    mpfr_clears(product, x, y, nullptr);
    return Q(value);
  };
  EXPECT_EQ(Compare(c, in, "n", narrow), 200);
  EXPECT_EQ(Compare(c, in, "r", [&](int64_t i) { return mpq_class(narrow(i) + Q(in.at("a").At(i))); }), 200);
}

TEST_P(EveryDtype, LayerNormAndItsGradientsAgreeWithMpfr) {
  constexpr int64_t kRows = 3, kLength = 11;
  Case c;
  c.tensors = {Tensor("x", GetParam(), {kRows, kLength}, true), Tensor("w", GetParam(), {kLength}, true),
               Tensor("b", GetParam(), {kLength}, true), Tensor("g", GetParam(), {kRows, kLength})};
  c.program = {MakeStep("layer_norm", {"x", "w", "b"}, "y", {{"normalized_shape", Integers({kLength})}}),
               MakeStep("backward", {"y"}, "", {{"grad", testing::Text("g")}})};
  c.observe = {"y", "x.grad", "w.grad", "b.grad"};
  const auto in = testing::NormalInputs(c, 7);
  const auto at = [&](const char* name, int64_t i) { return Big(in.at(name).At(i)); };
  const auto row = [&](int64_t r, Big* mean, Big* rstd) {
    const Big n(static_cast<double>(kLength));
    *mean = Big(0);
    for (int64_t j = 0; j < kLength; ++j) *mean = *mean + at("x", r * kLength + j);
    *mean = *mean / n;
    Big variance;
    for (int64_t j = 0; j < kLength; ++j) {
      const Big d = at("x", r * kLength + j) - *mean;
      variance = variance + d * d;
    }
    *rstd = Big(1) / (variance / n + Big(1e-5)).Apply(mpfr_sqrt);
  };
  const auto normalized = [&](int64_t i) {
    Big mean, rstd;
    row(i / kLength, &mean, &rstd);
    return (at("x", i) - mean) * rstd;
  };
  EXPECT_EQ(Compare(c, in, "y",
                    [&](int64_t i) {
                      return (normalized(i) * at("w", i % kLength) + at("b", i % kLength)).Rational();
                    }),
            33);
  EXPECT_EQ(Compare(c, in, "w.grad",
                    [&](int64_t j) {
                      Big sum;
                      for (int64_t r = 0; r < kRows; ++r)
                        sum = sum + at("g", r * kLength + j) * normalized(r * kLength + j);
                      return sum.Rational();
                    }),
            11);
  // The closed form of the input gradient (Ba, Kiros and Hinton, 2016, differentiated): another route than
  // the node rules.
  EXPECT_EQ(Compare(c, in, "x.grad",
                    [&](int64_t i) {
                      const int64_t r = i / kLength;
                      Big mean, rstd, sum, dot;
                      row(r, &mean, &rstd);
                      for (int64_t j = 0; j < kLength; ++j) {
                        const Big h = at("g", r * kLength + j) * at("w", j);
                        sum = sum + h;
                        dot = dot + h * normalized(r * kLength + j);
                      }
                      const Big n(static_cast<double>(kLength));
                      return (rstd * (at("g", i) * at("w", i % kLength) - sum / n - normalized(i) * dot / n))
                          .Rational();
                    }),
            33);
}

TEST(Reference, SpecialValuesFollowIeee) {
  Case c = testing::MatmulCase(DType::kFloat32, DType::kFloat32, 1, 2, 4);
  auto in = testing::NormalInputs(c, 8);
  const double inf = HUGE_VAL, nan = std::nan("");
  const double a[] = {inf, 1}, b[] = {1, -1, 0, 2, 3, inf, 1, -inf};
  for (int i = 0; i < 2; ++i) in.at("a").Set(i, a[i]);
  for (int i = 0; i < 8; ++i) in.at("b").Set(i, b[i]);
  const auto oracle = OpenCaseOracle(c, in);
  ASSERT_TRUE(oracle);
  const auto r = (*oracle)->References("product", All(4));
  const double expected[] = {inf, nan, nan, nan};  // inf + 3; -inf + inf; inf * 0 + 1; inf - inf
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(r[i].kind, ReferenceKind::kDomain);
    EXPECT_TRUE(std::isnan(expected[i]) ? std::isnan(r[i].hi) : r[i].hi == expected[i]) << i;
  }
}

TEST(Reference, WideExponentsStayExact) {
  Case c = testing::MatmulCase(DType::kFloat64, DType::kFloat64, 1, 3, 1);
  auto in = testing::NormalInputs(c, 9);
  const double a[] = {0x1p500, 0x1p-500, -0x1p500}, b[] = {0x1p400, 0x1p-500, 0x1p400};
  for (int i = 0; i < 3; ++i) in.at("a").Set(i, a[i]), in.at("b").Set(i, b[i]);
  EXPECT_EQ(Compare(c, in, "product", [&](int64_t) { return Q(0x1p-1000); }), 1);
}

// The list of nodes moves as it grows: whatever length it has when a backward pass begins, the gradients are
// right.
TEST(Reference, GradientsAreRightAtEveryLengthOfTheProgram) {
  for (int negations = 1; negations <= 40; ++negations) {
    Case c;
    c.tensors = {Tensor("x", DType::kFloat32, {2, 3}, true), Tensor("y", DType::kFloat32, {3}, true)};
    c.program = {MakeStep("mul", {"x", "y"}, "v0")};
    for (int i = 0; i < negations; ++i)
      c.program.push_back(MakeStep("neg", {"v" + std::to_string(i)}, "v" + std::to_string(i + 1)));
    c.program.push_back(MakeStep("sum", {"v" + std::to_string(negations)}, "total"));
    c.program.push_back(MakeStep("backward", {"total"}, ""));
    c.observe = {"x.grad", "y.grad"};
    const auto in = testing::NormalInputs(c, 10);
    const int sign = negations % 2 == 0 ? 1 : -1;
    EXPECT_EQ(
        Compare(c, in, "x.grad", [&](int64_t i) -> mpq_class { return sign * Q(in.at("y").At(i % 3)); }), 6);
    EXPECT_EQ(Compare(c, in, "y.grad",
                      [&](int64_t j) -> mpq_class {
                        return sign * (Q(in.at("x").At(j)) + Q(in.at("x").At(3 + j)));
                      }),
              3);
  }
}

TEST(Reference, AnUnknownLeadingDimensionCannotBeExpanded) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{-1, 3}, {-1}, {2, -1}}) {
    Case c;
    c.tensors = {Tensor("x", DType::kFloat32, {3})};
    c.program = {MakeStep("expand", {"x"}, "y", {{"shape", Integers(shape)}})};
    c.observe = {"y"};
    const auto oracle = OpenCaseOracle(c, testing::NormalInputs(c, 11));
    EXPECT_EQ(oracle && (*oracle)->Describe("y"), shape.size() == 1 || shape[0] == 2)
        << shape.size() << " " << shape[0];
  }
}

TEST(Reference, WhereTakesWhatTheConditionNamesAndGradientsFollowIt) {
  Case c;
  c.id = "test/where";
  c.tensors = {Tensor("mask", DType::kBool, {3}), Tensor("x", DType::kFloat32, {2, 3}, true),
               Tensor("y", DType::kBfloat16, {2, 1}, true)};
  c.program = {MakeStep("where", {"mask", "x", "y"}, "chosen"),
               MakeStep("where", {"mask", "chosen", "x"}, "again"),
               MakeStep("mul", {"again", "again"}, "square"), MakeStep("sum", {"square"}, "total"),
               MakeStep("backward", {"total"}, "")};
  c.program[1].of[1] = Operand{.name = "", .scalar = testing::Integer(3)};
  c.observe = {"chosen", "again", "x.grad", "y.grad"};
  Case floating = c;
  floating.tensors.erase(floating.tensors.begin());
  auto in = testing::NormalInputs(floating, 12);
  TensorData mask = TensorData::Zeros(DType::kBool, {3});
  mask.Set(1, 1);
  in.emplace("mask", mask);
  const auto x = [&](int64_t i) { return Q(in.at("x").At(i)); };
  EXPECT_EQ(Compare(c, in, "chosen", [&](int64_t i) { return i % 3 == 1 ? x(i) : Q(in.at("y").At(i / 3)); }),
            6);
  EXPECT_EQ(Compare(c, in, "again", [&](int64_t i) -> mpq_class { return i % 3 == 1 ? mpq_class(3) : x(i); }),
            6);
  EXPECT_EQ(Compare(c, in, "x.grad",
                    [&](int64_t i) -> mpq_class { return i % 3 == 1 ? mpq_class(0) : mpq_class(2 * x(i)); }),
            6);
  const auto plan = Lower(c);
  ASSERT_TRUE(plan && plan->gaps.empty());
  EXPECT_EQ(plan->nodes[static_cast<size_t>(plan->values.at("chosen"))].dtype, DType::kFloat32);
}

TEST(Reference, WhereNeedsABoolCondition) {
  Case c;
  c.tensors = {Tensor("x", DType::kFloat32, {3})};
  c.program = {MakeStep("where", {"x", "x", "x"}, "y")};
  c.observe = {"y"};
  const auto plan = Lower(c);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->gaps.at("y"), "where: the condition is no bool tensor");
}

Case InPlaceCase(std::vector<Step> steps, std::vector<std::string> observe) {
  Case c;
  c.id = "test/in_place";
  c.tensors = {Tensor("x", DType::kBfloat16, {3, 4}), Tensor("y", DType::kFloat32, {4})};
  c.program = std::move(steps);
  c.observe = std::move(observe);
  return c;
}

TEST(InPlace, TheReferenceIsWhatStandsInTheOperandAfterwards) {
  const Case c =
      InPlaceCase({MakeStep("clone", {"x"}, "before"), MakeStep("aten::mul_.Tensor", {"x", "y"}, ""),
                   MakeStep("aten::add_", {"x", "x"}, "again"), MakeStep("neg", {"x"}, "after")},
                  {"before", "x", "again", "after"});
  const auto in = testing::NormalInputs(c, 5);
  const auto x = [&](int64_t i) { return Q(in.at("x").At(i)); };
  const auto twice = [&](int64_t i) { return mpq_class(2 * x(i) * Q(in.at("y").At(i % 4))); };
  EXPECT_EQ(Compare(c, in, "before", x), 12);
  EXPECT_EQ(Compare(c, in, "x", twice), 12);
  EXPECT_EQ(Compare(c, in, "again", twice), 12);
  EXPECT_EQ(Compare(c, in, "after", [&](int64_t i) { return mpq_class(-twice(i)); }), 12);
  const auto plan = Lower(c);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->nodes[static_cast<size_t>(plan->values.at("x"))].dtype, DType::kBfloat16)
      << "stored in the dtype of the operand, not in what the operands promote to";
}

TEST(InPlace, ACopyIsBroadcastAndStored) {
  const Case c = InPlaceCase({MakeStep("aten::copy_", {"x", "y"}, "")}, {"x"});
  const auto plan = Lower(c);
  ASSERT_TRUE(plan && plan->gaps.empty());
  const PlanNode& stored = plan->nodes[static_cast<size_t>(plan->values.at("x"))];
  EXPECT_EQ(stored.kind, NodeKind::kCast);
  EXPECT_EQ(stored.dtype, DType::kBfloat16);
  EXPECT_EQ(stored.shape, (Shape{3, 4}));
  EXPECT_EQ(plan->nodes[static_cast<size_t>(plan->Root(stored.args[0]))].Get<TensorRead>().tensor, "y");
}

TEST(InPlace, WhatTheOracleCannotFollowIsAGapAndNeverTheOldValue) {
  const auto gaps = [](std::vector<Step> steps, std::vector<std::string> observe) {
    const auto plan = Lower(InPlaceCase(std::move(steps), std::move(observe)));
    EXPECT_TRUE(plan);
    return plan ? plan->gaps : std::map<std::string, std::string>();
  };
  const Step view =
      MakeStep("transpose", {"x"}, "view", {{"dim0", testing::Integer(0)}, {"dim1", testing::Integer(1)}});
  const Step before = MakeStep("neg", {"x"}, "before");
  const Step mul = MakeStep("aten::mul_", {"x", "y"}, "");
  auto found = gaps({view, before, mul}, {"view", "before", "x"});
  EXPECT_EQ(found.size(), 1u) << "the negative was made before, and x itself is followed";
  EXPECT_NE(found["view"].find("aten::mul_ writes through 'x'"), std::string::npos) << found["view"];
  found = gaps({view, before, MakeStep("aten::digamma_", {"view"}, "")}, {"view", "before", "x"});
  EXPECT_EQ(found.size(), 2u);
  EXPECT_NE(found["x"].find("aten::digamma_"), std::string::npos) << found["x"];
  found =
      gaps({MakeStep("aten::erfinv", {"y"}, "unknown"), MakeStep("aten::mul_", {"x", "unknown"}, "")}, {"x"});
  EXPECT_EQ(found.size(), 1u) << "a product with what has no reference";
}

}  // namespace
}  // namespace ulpscope
