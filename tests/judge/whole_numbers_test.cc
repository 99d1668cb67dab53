// Whole numbers and truth values: compared where every backend has to give the same, and only there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness/judge/classify.h"
#include "harness/judge/contract.h"
#include "harness/judge/local.h"
#include "oracles/oracle.h"
#include "tests/judge/make.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using testing::MakeStep;
using testing::Text;

Operand Number(double value) { return Operand{.name = "", .scalar = Attr{.value = value}}; }

struct Settling {
  std::vector<Step> program;
  bool settled = false;
  std::string why;
};

Case Of(const std::vector<Step>& program) {
  Case c;
  c.id = "test/whole";
  c.tensors = {testing::Tensor("x", DType::kBfloat16, {4, 6}), testing::Tensor("y", DType::kFloat32, {4, 6}),
               testing::Tensor("n", DType::kInt64, {4, 6}), testing::Tensor("s", DType::kInt8, {4, 6}),
               testing::Tensor("u", DType::kUint8, {4, 6})};
  c.program = program;
  c.observe = {c.program.back().as};
  return c;
}

std::map<std::string, TensorData> Inputs() {
  std::map<std::string, TensorData> inputs;
  const auto fill = [&](const char* name, DType dtype, double times) {
    TensorData data = TensorData::Zeros(dtype, {4, 6});
    for (int64_t i = 0; i < data.size(); ++i) data.Set(i, times * static_cast<double>(i * 7 % 24 - 11));
    inputs.emplace(name, std::move(data));
  };
  fill("x", DType::kBfloat16, 0.25);
  fill("y", DType::kFloat32, 0.125);
  fill("n", DType::kInt64, 1);
  fill("s", DType::kInt8, 10);
  inputs.emplace("u", TensorData::Zeros(DType::kUint8, {4, 6}));
  return inputs;
}

Step Compared(const std::string& op, const std::string& a, double number) {
  Step step = MakeStep(op, {a}, "result");
  step.of.push_back(Number(number));
  return step;
}

Step Cast(const std::string& of, const std::string& dtype, const std::string& as) {
  return MakeStep("cast", {of}, as, {{"dtype", Text(dtype)}});
}

bool IsSettled(const Case& c, const std::map<std::string, TensorData>& inputs) {
  const auto oracle = OpenCaseOracle(c, inputs);
  EXPECT_TRUE(oracle);
  const auto shape = (*oracle)->Describe("result");
  EXPECT_TRUE(shape) << (shape ? "" : shape.error().message);
  return shape && shape->settled;
}

TEST(WholeNumbers, AreSettledWhereNothingRoundsWrapsOrConverts) {
  const std::vector<Settling> all{
      {{MakeStep("argmax", {"x"}, "result")}, true, "elements in their order"},
      {{MakeStep("lt", {"x", "y"}, "result")}, true, "what is narrower is the same when it is wider"},
      {{Compared("gt", "x", 0.5)}, true, "bfloat16 holds that number"},
      {{Compared("gt", "x", 0.1)}, false, "backends round 0.1 to bfloat16 or do not"},
      {{MakeStep("mul", {"x", "y"}, "p"), Compared("gt", "p", 0.5)}, false, "a product is rounded first"},
      {{Cast("y", "bfloat16", "c"), Compared("gt", "c", 0.5)}, false, "a cast rounds, or is dropped"},
      {{Cast("x", "float32", "c"), Compared("gt", "c", 0.5)}, true, "that cast rounds nothing"},
      {{Cast("x", "int64", "result")}, false, "how a fraction is dropped is the backend's"},
      {{MakeStep("eq", {"n", "x"}, "result")}, false, "whole numbers that are converted may round"},
      {{Compared("gt", "s", 300)}, false, "300 wraps in int8"},
      {{Compared("gt", "u", -2)}, false, "-2 wraps in uint8"},
      {{Compared("gt", "u", 200)}, true, "uint8 holds that number"},
      {{MakeStep("add", {"n", "n"}, "result")}, true, "far from where int64 wraps"},
      {{MakeStep("add", {"s", "s"}, "result")}, false, "110 + 110 wraps in int8"},
      {{MakeStep("ge", {"x", "y"}, "c"), MakeStep("sum", {"c"}, "result")}, true, "24 at most"},
  };
  for (const Settling& each : all) EXPECT_EQ(IsSettled(Of(each.program), Inputs()), each.settled) << each.why;
}

TEST(WholeNumbers, SubnormalsSettleNothing) {
  auto inputs = Inputs();
  inputs.at("x").Set(3, 0x1p-130);
  EXPECT_FALSE(IsSettled(Of({Compared("gt", "x", 0)}), inputs)) << "backends that flush take it as zero";
}

TEST(WholeNumbers, AWrongOneIsAViolationWhateverIsAccepted) {
  const Case c = Of({MakeStep("argmax", {"x"}, "result", {{"dim", testing::Integer(1)}})});
  const auto oracle = OpenCaseOracle(c, Inputs());
  ASSERT_TRUE(oracle);
  TensorData places = TensorData::Zeros(DType::kInt64, {4});
  std::vector<int64_t> every{0, 1, 2, 3};
  const auto references = (*oracle)->References("result", every);
  for (int64_t i = 0; i < 4; ++i) places.Set(i, references[static_cast<size_t>(i)].hi);
  const Classification right = ClassifyValue(**oracle, "result", places);
  EXPECT_EQ(right.kind, ClassificationKind::kNotFloating);
  EXPECT_EQ(right.checked, 4);
  EXPECT_EQ(right.label, "exact: what the program gives (4 of 4 elements looked at)");
  const double due = places.At(2);
  places.Set(2, due == 5 ? 4 : due + 1);
  const Classification wrong = ClassifyValue(**oracle, "result", places);
  EXPECT_EQ(wrong.kind, ClassificationKind::kWrongValue);
  EXPECT_EQ(wrong.label,
            fmt::format("not what the program gives in 1 of 4 elements, first [2] = {} against {}",
                        places.At(2), due));
  Case accepting = testing::MakeCase();
  accepting.contract.accept_any = true;
  EXPECT_EQ(JudgeContract(accepting, "result", testing::Value(wrong, DType::kInt64)),
            ContractVerdict::kViolates);
  EXPECT_EQ(JudgeContract(accepting, "result", testing::Value(right, DType::kInt64)),
            ContractVerdict::kConforms);
}

TEST(WholeNumbers, AStepIsHeldToWhatIsCertainlyRead) {
  // The product is stored in bfloat16, and compared before that; what is negated is a truth value as it is stored.
  Case c;
  c.id = "test/steps~opened";
  c.companion_of = "test/steps";
  for (const char* name : {"x", "y", "z"})
    c.tensors.push_back(testing::Tensor(name, DType::kBfloat16, {300}));
  c.program = {MakeStep("mul", {"x", "y"}, "p"), MakeStep("gt", {"p", "z"}, "above"),
               MakeStep("logical_not", {"above"}, "below")};
  c.observe = {"p", "above", "below"};
  auto inputs = testing::NormalInputs(c, 5);
  std::map<std::string, TensorData> values{{"p", TensorData::Zeros(DType::kBfloat16, {300})},
                                           {"above", TensorData::Zeros(DType::kBool, {300})},
                                           {"below", TensorData::Zeros(DType::kBool, {300})}};
  int differ = 0;
  for (int64_t i = 0; i < 300; ++i) {
    const double product = inputs.at("x").At(i) * inputs.at("y").At(i),
                 rounded = RoundTo(product, Bfloat16());
    inputs.at("z").Set(i, rounded);
    values.at("p").Set(i, rounded);
    values.at("above").Set(i, product > rounded);
    values.at("below").Set(i, product <= rounded);
    if (product > rounded) ++differ;
  }
  ASSERT_GT(differ, 0) << "the inputs show which of the two was compared";
  const auto judge = [&] {
    OracleCounts counts;
    return JudgeSteps(
        c, inputs, values,
        [](const Case& piece, std::map<std::string, TensorData> in, const PieceOptions&) {
          return OpenCaseOracle(piece, std::move(in));
        },
        &counts);
  };
  EXPECT_EQ(judge().at("above").kind, ClassificationKind::kNotFloating);
  EXPECT_EQ(judge().at("above").checked, 0);
  EXPECT_EQ(judge().at("below").checked, 300);
  values.at("below").Set(7, values.at("above").At(7));
  EXPECT_EQ(judge().at("below").kind, ClassificationKind::kWrongValue);
}

}  // namespace
}  // namespace ulpscope
