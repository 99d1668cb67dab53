// The bounds behind hard evidence: no summation order and no algebraic form that a backend may use escapes
// them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>

#include "harness/num/error_free.h"
#include "oracles/dot/orders.h"
#include "oracles/dot/sum.h"
#include "oracles/emulated.h"
#include "oracles/models.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"
#include "tests/support/models.h"

namespace ulpscope {
namespace {

/// Sums in a random binary tree: two random partial sums are joined until one is left.
double RandomTree(const AccSpec& acc, std::vector<double> partial, std::mt19937_64* random) {
  for (double& term : partial) term = StoreIn(acc, {.hi = term, .lo = 0});
  while (partial.size() > 1) {
    std::swap(partial[(*random)() % partial.size()], partial.back());
    const double last = partial.back();
    partial.pop_back();
    double& other = partial[(*random)() % partial.size()];
    other = StepIn(acc, other, {.hi = last, .lo = 0});
  }
  return partial[0];
}

struct Worst {
  double share = 0;  ///< largest error as a share of its bound
  int64_t sums = 0;
};

Worst Search(const std::string& word, int64_t n, const std::function<double(std::mt19937_64*)>& draw) {
  const AccSpec acc = *ParseAcc(word);
  std::mt19937_64 random(n);
  Worst worst;
  for (int round = 0; round < 400; ++round) {
    std::vector<double> terms(static_cast<size_t>(n));
    long double exact = 0, magnitude = 0;
    for (double& term : terms) {
      term = RoundTo(draw(&random), Binary16());
      exact += term;
      magnitude += std::fabs(term);
    }
    const double sum = RandomTree(acc, terms, &random);
    if (!std::isfinite(sum)) continue;
    const double bound = RelativeBound(acc, n) * static_cast<double>(magnitude) + AbsoluteBound(acc, n);
    worst.share = std::max(worst.share, static_cast<double>(std::fabs(sum - exact)) / bound);
    ++worst.sums;
  }
  return worst;
}

class Accumulators : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Words, Accumulators,
                         ::testing::Values("float32", "float32_rz", "float32_odd", "float16",
                                           "float16_via_float32", "bfloat16", "bfloat16_via_float32"));

TEST_P(Accumulators, NoOrderEscapesTheBound) {
  const auto uniform = [](std::mt19937_64* random) {
    return static_cast<double>((*random)() >> 11) * 0x1p-52 - 1;
  };
  const auto positive = [&](std::mt19937_64* random) { return std::fabs(uniform(random)); };
  const auto wide = [&](std::mt19937_64* random) {
    return std::ldexp(uniform(random), static_cast<int>((*random)() % 16) - 8);
  };
  int64_t sums = 0;
  double worst = 0;
  for (const int64_t n : {2, 3, 7, 8, 31, 64, 200}) {
    for (const std::function<double(std::mt19937_64*)>& draw :
         {std::function<double(std::mt19937_64*)>(uniform), {positive}, {wide}}) {
      const Worst found = Search(GetParam(), n, draw);
      EXPECT_LE(found.share, 1) << GetParam() << " n=" << n;
      sums += found.sums;
      worst = std::max(worst, found.share);
    }
  }
  EXPECT_GT(sums, 4000);
  // The search must be able to find a violation: a bound of a fiftieth of the size would have been caught.
  EXPECT_GT(worst, 0.02) << GetParam();
}

class BlockUnits : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Words, BlockUnits,
                         ::testing::Values("blockfma(4,23,rz)", "blockfma(8,25,rz)", "blockfma(16,26,rz)",
                                           "blockfma(16,13,rz)", "blockfma(8,24,rne)",
                                           "blockfma(8,24,rne_float16)"));

TEST_P(BlockUnits, NoOrderEscapesTheBound) {
  const AccSpec acc = *ParseAcc(GetParam());
  std::mt19937_64 random(5);
  const double quantum = std::ldexp(1.0, -acc.fraction);
  int64_t sums = 0;
  double worst = 0;
  for (int round = 0; round < 900; ++round) {
    constexpr std::array<size_t, 6> kCount{2, 3, 8, 17, 64, 200};
    std::vector<SumTerm> terms;
    TwoDoubles exact;
    double magnitude = 0;
    for (size_t k = 0; k < kCount[static_cast<size_t>(round) % kCount.size()]; ++k) {
      const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
      // Terms of any sign; terms all truncated to one side; or all but the first truncated to zero.
      const double tail = round % 3 == 0 ? uniform - 0.5 : 1 + (1 - uniform * 0x1p-10) * quantum;
      terms.push_back(TermOf(round % 3 == 2 && k > 0 ? (1 - 0x1p-20) * quantum : tail, 1));
      exact = Add(exact, terms.back().value);
      magnitude += std::fabs(terms.back().value.hi);
    }
    const auto n = static_cast<int64_t>(terms.size());
    const double bound = RelativeBound(acc, n) * magnitude + AbsoluteBound(acc, n);
    for (const SumOrder& order : SumOrders(AddendOrders::kNone)) {
      const TwoDoubles sum = EmulatedArithmetic::SumPasses(acc, order, {terms}, nullptr);
      const double share = std::fabs((sum.hi - exact.hi) - exact.lo) / bound;
      EXPECT_LE(share, 1) << order.name << " of " << n;
      worst = std::max(worst, share);
      ++sums;
    }
  }
  EXPECT_GT(sums, 4000);
  EXPECT_GT(worst, 0.2) << "a bound of a fifth of the size would have been caught";
}

/// layer_norm of one row in float32, in the algebraic forms that frameworks use.
std::map<std::string, std::vector<float>> LayerNormForms(const std::vector<float>& x,
                                                         const std::vector<float>& w,
                                                         const std::vector<float>& b) {
  const auto n = static_cast<float>(x.size());
  float sum = 0, squares = 0;
  for (const float v : x) {
    sum += v;
    squares += v * v;
  }
  const float mean = sum / n;
  float two_pass = 0, welford_mean = 0, welford = 0, count = 0;
  for (const float v : x) {
    two_pass += (v - mean) * (v - mean);
    count += 1;
    const float delta = v - welford_mean;
    welford_mean += delta / count;
    welford += delta * (v - welford_mean);
  }
  const std::map<std::string, std::pair<float, float>> moments{
      {"two passes", {mean, two_pass / n}},
      {"one pass", {mean, std::max(squares / n - mean * mean, 0.0f)}},
      {"Welford", {welford_mean, welford / n}}};
  std::map<std::string, std::vector<float>> forms;
  for (const auto& [name, moment] : moments) {
    const float rstd = 1 / std::sqrt(moment.second + 1e-5f);
    for (size_t i = 0; i < x.size(); ++i) {
      forms[name].push_back((x[i] - moment.first) * rstd * w[i] + b[i]);
      forms[name + ", scale first"].push_back((x[i] - moment.first) * (rstd * w[i]) + b[i]);
      forms[name + ", folded"].push_back(x[i] * (rstd * w[i]) + (b[i] - moment.first * (rstd * w[i])));
      forms[name + ", fused"].push_back(std::fma(std::fma(x[i], rstd, -moment.first * rstd), w[i], b[i]));
    }
  }
  return forms;
}

class Offsets : public ::testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(LayerNorm, Offsets, ::testing::Values(0.0, 3.0, 100.0));

TEST_P(Offsets, NoAlgebraicFormEscapesFloat32) {
  constexpr int64_t kLength = 64;
  Case c;
  c.tensors = {testing::Tensor("x", DType::kFloat32, {1, kLength}),
               testing::Tensor("w", DType::kFloat32, {kLength}),
               testing::Tensor("b", DType::kFloat32, {kLength})};
  c.program = {testing::MakeStep("layer_norm", {"x", "w", "b"}, "y",
                                 {{"normalized_shape", testing::Integers({kLength})}})};
  c.observe = {"y"};
  int64_t checked = 0;
  double tightest = 1;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    auto in = testing::NormalInputs(c, seed);
    std::vector<float> x, w, b;
    for (int64_t i = 0; i < kLength; ++i) {
      in.at("x").Set(i, static_cast<float>(in.at("x").At(i) + GetParam()));
      x.push_back(static_cast<float>(in.at("x").At(i)));
      w.push_back(static_cast<float>(in.at("w").At(i)));
      b.push_back(static_cast<float>(in.at("b").At(i)));
    }
    const auto oracle = OpenCaseOracle(c, in);
    ASSERT_TRUE(oracle);
    const auto forms = LayerNormForms(x, w, b);
    for (const auto& hypothesis : (*oracle)->Bank("y", DType::kFloat32)) {
      if (hypothesis->model().Name() != "in=as_is;prod=exact;acc=float32;mid=none;out=float32_rne") continue;
      for (const auto& [form, values] : forms) {
        for (int64_t i = 0; i < kLength; ++i) {
          const Interval range = hypothesis->Enclose(i);
          const double y = values[static_cast<size_t>(i)];
          EXPECT_TRUE(range.lo <= y && y <= range.hi) << form << " seed " << seed << " element " << i << ": "
                                                      << y << " outside " << range.lo << " .. " << range.hi;
          tightest = std::min(tightest, range.hi - range.lo);
          ++checked;
        }
      }
    }
  }
  EXPECT_EQ(checked, 20 * 12 * kLength);
  EXPECT_LT(tightest, 1e-2) << "an enclosure this wide would prove nothing";
}

// A sum that is cut stops at the largest number where it would overflow, and is finite though it lost what was added there.
TEST(Bounds, WhatIsCutAtTheLargestNumberIsInsideItsInterval) {
  Case c;
  c.id = "saturates";
  c.tensors = {testing::Tensor("a", DType::kFloat32, {1, 4}), testing::Tensor("b", DType::kFloat32, {4, 1})};
  c.program = {testing::MakeStep("matmul", {"a", "b"}, "y")};
  c.observe = {"y"};
  std::map<std::string, TensorData> inputs = testing::NormalInputs(c, 1);
  const double large = RoundTo(3e38, Binary32());
  for (int64_t k = 0; k < 4; ++k) {
    inputs.at("a").Set(k, k < 2 ? large : -large);
    inputs.at("b").Set(k, 1);
  }
  const auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle);
  const std::vector<Proposal> proposals{{.in = {}, .acc = testing::Acc("float32_rz")}};
  const auto found = (*oracle)->Propose("y", DType::kFloat32, proposals);
  ASSERT_EQ(found.size(), 1u);
  double sum = 0;
  for (int64_t k = 0; k < 4; ++k)
    sum = RoundTo(sum + inputs.at("a").At(k), Binary32(), Rounding::kTowardZero);
  EXPECT_LT(sum, -1e38) << "it is 0 in exact arithmetic";
  EXPECT_TRUE(found[0]->Enclose(0).Holds(sum)) << sum;
}

class ExactSums : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Words, ExactSums,
                         ::testing::Values("float64", "float32", "float32_rz", "float32+ftz", "float16",
                                           "float16_via_float32", "bfloat16", "p19", "p29", "compensated",
                                           "blockfma(4,24,rz)", "blockfma(8,25,rne)", "blockfma(16,13,rz)",
                                           "blockfma(8,24,rne_float16)", "split_k(bfloat16,float32)",
                                           "split_k(float32,p16)"));

/// Multiples of 2^lowest of at most `bits` bits.
std::vector<SumTerm> DrawMultiples(int lowest, int bits, size_t count, std::mt19937_64* random) {
  std::vector<SumTerm> terms;
  for (size_t k = 0; k < count; ++k) {
    const auto units = static_cast<double>((*random)() >> (64 - bits + static_cast<int>((*random)() % 3)));
    terms.push_back(TermOf(std::ldexp((*random)() % 3 == 0 ? -units : units, lowest), 1));
  }
  return terms;
}

TEST_P(ExactSums, NoOrderRoundsWhereNoPartialSumIsTooLong) {
  const auto parsed = ParseAcc(GetParam());
  ASSERT_TRUE(parsed);
  const AccSpec acc = *parsed;
  std::mt19937_64 random(3);
  int64_t exact = 0, off = 0;
  for (size_t round = 0; round < 1000; ++round) {
    constexpr std::array kLowest{-170, -149, -133, -126, -40, -24, -14, 0, 5, 100};
    constexpr std::array<size_t, 4> kCount{2, 3, 8, 31};
    const int lowest = kLowest[round % kLowest.size()];
    const int bits = std::max(3, std::min(acc.bits(), 53) - static_cast<int>(random() % 6));
    const auto terms = DrawMultiples(lowest, bits, kCount[random() % kCount.size()], &random);
    TwoDoubles sum;
    double positive = 0, negative = 0;
    for (const SumTerm& term : terms) {
      sum = Add(sum, term.value);
      (term.value.hi > 0 ? positive : negative) += std::fabs(term.value.hi);
    }
    const bool never_rounded = SumsExactly(acc, lowest, std::max(positive, negative));
    for (const SumOrder& order : SumOrders(AddendOrders::kNone)) {
      const TwoDoubles got = EmulatedArithmetic::SumPasses(acc, order, {terms}, nullptr);
      const bool same = got.hi == sum.hi && got.lo == sum.lo;
      if (never_rounded) {
        ASSERT_TRUE(same) << order.name << " of " << terms.size() << " multiples of 2^" << lowest << ": "
                          << got.hi << " for " << sum.hi;
        ++exact;
      } else {
        off += same ? 0 : 1;
      }
    }
  }
  EXPECT_GT(exact, 1000);
  EXPECT_GT(off, 1000) << "sums that are too long were not met";
}

/// Eight terms of eight bits each, +-1.xx and +-3.xx: sums of 12 bits at most.
class ShortSums : public ::testing::Test {
 protected:
  /// `op` of "a" (and "b", whose elements are 1.25), as float32 has it, and what exact arithmetic gives.
  void Open(Case c) {
    c.id = "short_sums";
    c.observe = {"y"};
    auto inputs = testing::NormalInputs(c, 1);
    for (int64_t k = 0; k < kTerms; ++k) {
      const double term = (k % 2 == 0 ? 1 : -3) - static_cast<double>(k) / 64;
      inputs.at("a").Set(k, term);
      exact_ += term;
      if (inputs.contains("b")) inputs.at("b").Set(k, 1.25);
    }
    auto oracle = OpenCaseOracle(c, inputs);
    ASSERT_TRUE(oracle);
    oracle_ = std::move(*oracle);
  }
  /// `in`: what both operands of a product are read as.
  bool Holds(const std::string& acc, double y, const std::string& in = "as_is") const {
    std::vector<Proposal> proposals{{.in = {}, .acc = testing::Acc(acc)}};
    if (in != "as_is") proposals[0].in = testing::Ins({{"a", in}, {"b", in}});
    const auto found = oracle_->Propose("y", DType::kFloat32, proposals);
    EXPECT_FALSE(found.empty());
    return std::ranges::any_of(
        found, [&](const auto& one) { return one->Enclose(0).Holds(y) && !one->SurelyHolds(0, y + 1); });
  }

  static constexpr int64_t kTerms = 8;
  double exact_ = 0;
  std::unique_ptr<CaseOracle> oracle_;
};

TEST_F(ShortSums, OfProductsAreExactInEveryOrder) {
  Case c;
  c.tensors = {testing::Tensor("a", DType::kFloat32, {1, kTerms}),
               testing::Tensor("b", DType::kFloat32, {kTerms, 1})};
  c.program = {testing::MakeStep("matmul", {"a", "b"}, "y")};
  ASSERT_NO_FATAL_FAILURE(Open(c));
  const double y = exact_ * 1.25;
  // All these readings leave the operands as they are.
  for (const char* in : {"as_is", "tf32_rna", "float16_rne", "bf16x3"}) {
    for (const char* acc : {"float32", "float32_rz", "blockfma(8,24,rz)", "p16", "compensated"}) {
      EXPECT_TRUE(Holds(acc, y, in)) << in << " " << acc;
      // Errors of this size are usual in float32, of other terms.
      EXPECT_FALSE(Holds(acc, y + 0x1p-19, in)) << in << " " << acc;
    }
    EXPECT_TRUE(Holds("p10", y + 0x1p-19, in)) << "there additions are rounded";
  }
}

TEST_F(ShortSums, AreExactBesideOneAnother) {
  Case c;
  c.tensors = {testing::Tensor("a", DType::kFloat32, {kTerms})};
  c.program = {testing::MakeStep("sum", {"a"}, "y")};
  ASSERT_NO_FATAL_FAILURE(Open(c));
  EXPECT_TRUE(Holds("float32", exact_));
  EXPECT_FALSE(Holds("float32", exact_ + 0x1p-19));
}

// A mean may scale its terms before it adds them, which are then no short numbers.
TEST_F(ShortSums, OfAMeanMayBeOfScaledTerms) {
  Case c;
  c.tensors = {testing::Tensor("a", DType::kFloat32, {11})};
  c.program = {testing::MakeStep("mean", {"a"}, "y")};
  c.id = "short_sums";
  c.observe = {"y"};
  auto inputs = testing::NormalInputs(c, 1);
  float running = 0;
  double exact = 0;
  for (int64_t k = 0; k < 11; ++k) {
    const float term = static_cast<float>(k % 2 == 0 ? 1 : -3) - static_cast<float>(k) / 64;
    inputs.at("a").Set(k, term);
    running += term * (1.0F / 11);
    exact += term;
  }
  auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle);
  oracle_ = std::move(*oracle);
  ASSERT_NE(running, static_cast<float>(exact / 11));
  EXPECT_TRUE(Holds("float32", running));
}

}  // namespace
}  // namespace ulpscope
