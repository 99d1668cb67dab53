// classification_kind.patch: a result that nobody wrote is a kind of its own, from the classifier to the matrix.
#include <gtest/gtest.h>

#include "harness/judge/classify.h"
#include "harness/judge/contract.h"
#include "oracles/oracle.h"
#include "reports/cell.h"
#include "tests/judge/make.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

TEST(Unwritten, IsWrongWhateverIsAccepted) {
  Case c = testing::MakeCase();
  c.id = "test/sum";
  c.tensors = {testing::Tensor("x", DType::kFloat32, {16, 64})};
  c.program = {testing::MakeStep("sum", {"x"}, "product", {{"dim", testing::Integers({1})}})};
  c.observe = {"product"};
  c.contract.accept_any = true;
  const auto inputs = testing::NormalInputs(c, 1);
  const auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle);
  TensorData observed = TensorData::Zeros(DType::kFloat32, {16});
  const Classification found = ClassifyValue(**oracle, "product", observed);
  EXPECT_EQ(Name(found.kind), "unwritten");
  const ValueResult value = testing::Value(found, DType::kFloat32);
  EXPECT_EQ(JudgeContract(c, "product", value), ContractVerdict::kViolates);
  EXPECT_EQ(CellText(value), "zero!");
  EXPECT_EQ(CellLegend({"zero!"}).back(), "zero! zero everywhere, as memory that nobody wrote");
  EXPECT_EQ(ParseClassificationKind("unwritten"), found.kind) << "a run folder keeps it";
  observed.Set(3, 1);
  EXPECT_NE(Name(ClassifyValue(**oracle, "product", observed).kind), "unwritten");
}

}  // namespace
}  // namespace ulpscope
