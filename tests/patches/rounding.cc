// rounding.patch: sums that are rounded away from zero are identified as that.
#include <gtest/gtest.h>

#include "harness/judge/classify.h"
#include "oracles/models.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using Words = std::vector<std::string>;

TEST(RoundedAway, IsIdentifiedBesideTheOtherRoundings) {
  Case c;
  c.id = "test/sum";
  c.tensors = {testing::Tensor("x", DType::kFloat32, {32, 512})};
  c.program = {testing::MakeStep("sum", {"x"}, "y", {{"dim", testing::Integers({1})}})};
  c.observe = {"y"};
  auto inputs = testing::NormalInputs(c, 1);
  TensorData& x = inputs.at("x");
  for (int64_t i = 0; i < x.size(); ++i) x.Set(i, std::fabs(x.At(i)));
  const auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle);
  for (const std::string acc : {"float32_ra", "float32_rz", "float32"}) {
    const auto model = ParsePrecisionModel("in=as_is;prod=exact;acc=" + acc + ";mid=none;out=float32_rne");
    ASSERT_TRUE(model);
    const auto observed = EmulateProgram(c, inputs, *model, "sequential");
    ASSERT_TRUE(observed);
    EXPECT_EQ(ClassifyValue(**oracle, "y", observed->at("y")).facets.at("acc"), Words{acc});
  }
}

TEST(RoundedAway, OneStep) {
  EXPECT_EQ(RoundTo(0x1.000002p0 + 0x1p-40, Binary32(), Rounding::kAway), 0x1.000004p0);
  EXPECT_EQ(RoundTo(-1 - 0x1p-40, Binary32(), Rounding::kAway), -0x1.000002p0);
  EXPECT_EQ(RoundTo(TwoDoubles{1, -0x1p-80}, Binary32(), Rounding::kAway), 1.0);
  EXPECT_EQ(RoundTo(0x1p-151, Binary32(), Rounding::kAway), 0x1p-149);
}

}  // namespace
}  // namespace ulpscope
