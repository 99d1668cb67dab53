// Results that all have fewer bits than their dtype were rounded on the way, in ops with steps inside and in float64 as elsewhere.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "harness/judge/classify.h"
#include "harness/judge/contract.h"
#include "harness/num/error_free.h"
#include "harness/num/float_format.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

constexpr int64_t kRows = 16, kColumns = 16;

/// softmax over rows in binary64, each result rounded to so many bits.
TensorData SoftmaxIn(const TensorData& x, int bits) {
  TensorData y = TensorData::Zeros(DType::kFloat32, {kRows, kColumns});
  for (int64_t i = 0; i < kRows; ++i) {
    double total = 0;
    for (int64_t j = 0; j < kColumns; ++j) total += std::exp(x.At(i * kColumns + j));
    for (int64_t j = 0; j < kColumns; ++j)
      y.Set(i * kColumns + j, RoundTo(std::exp(x.At(i * kColumns + j)) / total, FormatOfBits(bits)));
  }
  return y;
}

TEST(SignificantBits, AreCountedInAnOpWithStepsInside) {
  Case c;
  c.id = "softmax";
  c.tensors = {testing::Tensor("x", DType::kFloat32, {kRows, kColumns})};
  c.program = {testing::MakeStep("softmax", {"x"}, "y", {{"dim", testing::Integer(-1)}})};
  c.observe = {"y"};
  const auto inputs = testing::NormalInputs(c, 5);
  const auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle);
  const ValueDemand demand{.dtype = {}, .facets = {{"mid", {"none"}}, {"out", {"float32_rne"}}}};
  const auto judge = [&](int bits) {
    return JudgeFacets(demand, ClassifyValue(**oracle, "y", SoftmaxIn(inputs.at("x"), bits)));
  };
  EXPECT_EQ(judge(24), ContractVerdict::kConforms);
  for (const int bits : {18, 20, 21, 22, 23}) EXPECT_NE(judge(bits), ContractVerdict::kConforms) << bits;
}

/// y = a b in binary64, each partial sum in so many bits.
TensorData SumsIn(const Case& c, const std::map<std::string, TensorData>& inputs, int bits) {
  const int64_t m = c.tensors[0].shape[0], k = c.tensors[0].shape[1], n = c.tensors[1].shape[1];
  TensorData y = TensorData::Zeros(DType::kFloat64, {m, n});
  for (int64_t i = 0; i < m * n; ++i) {
    TwoDoubles sum;
    for (int64_t x = 0; x < k; ++x) {
      sum = Add(sum, TwoProduct(inputs.at("a").At(i / n * k + x), inputs.at("b").At(x * n + i % n)));
      sum = {.hi = bits < 53 ? RoundTo(sum, FormatOfBits(bits)) : RoundTo(sum, Binary64()), .lo = 0};
    }
    y.Set(i, sum.hi);
  }
  return y;
}

TEST(SignificantBits, Float64SumsInFewerBitsAreNoFloat32SumsThatAreJoined) {
  const Case c = testing::MatmulCase(DType::kFloat64, DType::kFloat64, 12, 40, 20);
  const auto inputs = testing::NormalInputs(c, 2);
  const auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle);
  const ValueDemand demand{.dtype = {}, .facets = {{"acc", {"float64"}}, {"in", {"as_is"}}}};
  for (const int bits : {32, 40, 48}) {
    const Classification found = ClassifyValue(**oracle, "product", SumsIn(c, inputs, bits));
    EXPECT_EQ(found.label.find("split_k"), std::string::npos) << bits << ": " << found.label;
    EXPECT_NE(JudgeFacets(demand, found), ContractVerdict::kConforms) << bits;
  }
  EXPECT_EQ(JudgeFacets(demand, ClassifyValue(**oracle, "product", SumsIn(c, inputs, 53))),
            ContractVerdict::kConforms);
}

}  // namespace
}  // namespace ulpscope
