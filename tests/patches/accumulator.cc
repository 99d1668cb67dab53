// accumulator.patch: what sums as Kahan does is identified as that.
#include <gtest/gtest.h>

#include "harness/base/find.h"
#include "harness/judge/classify.h"
#include "oracles/models.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using Words = std::vector<std::string>;

constexpr int64_t kRows = 16, kTerms = 256;

Case Sum() {
  Case c;
  c.id = "test/sum";
  c.tensors = {testing::Tensor("x", DType::kFloat32, {kRows, kTerms})};
  c.program = {testing::MakeStep("sum", {"x"}, "y", {{"dim", testing::Integers({1})}})};
  c.observe = {"y"};
  return c;
}

Words AccumulatorsOf(const std::string& acc) {
  const Case c = Sum();
  auto inputs = testing::NormalInputs(c, 1);
  // The first word alone does not tell what is small beside 2^30 and comes before it.
  TensorData& x = inputs.at("x");
  for (int64_t k = 0; k < kTerms; ++k) x.Set(k, 0);
  int64_t at = 0;
  for (const double term : {1.0, 0x1p30, 1.0, -0x1p30}) x.Set(at++, term);
  const auto model = ParsePrecisionModel("in=as_is;prod=exact;acc=" + acc + ";mid=none;out=float32_rne");
  EXPECT_TRUE(model);
  const auto observed = EmulateProgram(c, inputs, *model, "sequential");
  const auto oracle = OpenCaseOracle(c, inputs);
  EXPECT_TRUE(observed && oracle);
  return ClassifyValue(**oracle, "y", observed->at("y")).facets.at("acc");
}

TEST(Accumulator, KahansSumsAreIdentified) { EXPECT_EQ(AccumulatorsOf("kahan"), Words{"kahan"}); }

TEST(Accumulator, OtherSumsAreIdentifiedAsBefore) {
  // In another order Kahan's sums give the results of wider ones too.
  for (const std::string acc : {"compensated", "float64"}) EXPECT_TRUE(Contains(AccumulatorsOf(acc), acc));
  const Words plain = AccumulatorsOf("float32");
  EXPECT_TRUE(Contains(plain, "float32"));
  EXPECT_FALSE(Contains(plain, "kahan")) << "Kahan's sums err by less";
}

}  // namespace
}  // namespace ulpscope
