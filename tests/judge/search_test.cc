// What is said where no model of the bank explains the results, and how little would still be seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "harness/judge/classify.h"
#include "harness/num/error_free.h"
#include "harness/num/float_format.h"
#include "oracles/models.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

/// Sums in turn, in so many bits, of all products but those of `skipped` and with those of `twice` counted twice.
TensorData InTurn(const Case& c, const std::map<std::string, TensorData>& inputs, int bits,
                  int64_t skipped = -1, int64_t twice = -1) {
  const TensorData &a = inputs.at("a"), &b = inputs.at("b");
  const int64_t m = c.tensors[0].shape[0], k = c.tensors[0].shape[1], n = c.tensors[1].shape[1];
  TensorData product = TensorData::Zeros(DType::kFloat32, {m, n});
  for (int64_t i = 0; i < m * n; ++i) {
    double sum = 0;
    for (int64_t x = 0; x < k; ++x) {
      const double term = a.At(i / n * k + x) * b.At(x * n + i % n);
      if (x == skipped) continue;
      sum = RoundTo(TwoSum(sum, x == twice ? 2 * term : term), FormatOfBits(bits));
    }
    product.Set(i, sum);
  }
  return product;
}

Case Product() { return testing::MatmulCase(DType::kBfloat16, DType::kFloat32, 16, 100, 16); }

TEST(Search, ProductsThatAreMissingOrCountedTwiceAreNamed) {
  const Case c = Product();
  const auto inputs = testing::NormalInputs(c, 1);
  auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle);
  EXPECT_THAT(TextsOf(ClassifyValue(**oracle, "product", InTurn(c, inputs, 24, 41)).says),
              Contains("as if number 41 of 100 products were missing"));
  EXPECT_THAT(TextsOf(ClassifyValue(**oracle, "product", InTurn(c, inputs, 24, -1, 7)).says),
              Contains("as if number 7 of 100 products were counted twice"));
  EXPECT_THAT(TextsOf(ClassifyValue(**oracle, "product", InTurn(c, inputs, 24, 99)).says),
              Contains("as if the last 1 of 100 products were missing"));
}

/// Two rows of 21 bits, of products of many sizes: one of hundreds of changes brings what is off by little as near as the rest.
TEST(Search, WhatOneOfManyChangesExplainsByChanceIsNotSaid) {
  const Case c = Product();
  constexpr uint64_t kSeed = 6;
  auto inputs = testing::NormalInputs(c, kSeed);
  for (auto& [name, data] : inputs) {
    for (int64_t i = 0; i < data.size(); ++i)
      data.Set(
          i, std::ldexp(data.At(i), static_cast<int>(MixBits(kSeed * 7919 + static_cast<uint64_t>(i)) % 24)));
  }
  TensorData product = InTurn(c, inputs, 24);
  const TensorData narrow = InTurn(c, inputs, 21);
  for (int64_t i = 0; i < product.size(); ++i) {
    if (i / 16 == 0 || i / 16 == 15) product.Set(i, narrow.At(i));
  }
  auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle);
  const Classification found = ClassifyValue(**oracle, "product", product);
  EXPECT_TRUE(found.models.empty()) << found.label;
  EXPECT_THAT(found.label, Not(HasSubstr("products were")));
  EXPECT_THAT(found.label, HasSubstr("times those of float32 in any order tried"));
}

/// Behind a rounding to 14 bits sums in some bits more are as likely as float32's.
TEST(Search, SumsAreNotSeenBehindARoundingToFewBits) {
  const Case c = testing::MatmulCase(DType::kFloat16, DType::kFloat16, 16, 64, 16);
  const auto inputs = testing::NormalInputs(c, 3);
  const auto model = ParsePrecisionModel("in=as_is;prod=exact;acc=float32;mid=p14;out=float16_rne");
  ASSERT_TRUE(model);
  const auto values = EmulateProgram(c, inputs, *model, "sequential");
  ASSERT_TRUE(values);
  auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle);
  const Classification found = ClassifyValue(**oracle, "product", values->at("product"));
  ASSERT_TRUE(found.floors.contains("acc")) << found.label;
  EXPECT_LE(found.floors.at("acc"), 21) << found.label;
  EXPECT_FALSE(found.floors.contains("mid")) << "it is what was found";
}

}  // namespace
}  // namespace ulpscope
