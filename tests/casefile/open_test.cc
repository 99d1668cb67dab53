// Which programs are opened, and what is observed of them then.
#include "harness/casefile/open.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/casefile/load.h"
#include "harness/casefile/prove.h"

namespace ulpscope {
namespace {

using ::testing::ElementsAre;

Case Load(const std::string& program, const std::string& observe, const std::string& rest = "") {
  const std::string text =
      "cases:\n  - name: c\n    tensors: {x: {dtype: float32, shape: [4], fill: normal}}\n    program:\n" +
      program + "    observe: [" + observe + "]\n" + rest;
  LoadResult loaded = LoadCaseText(text, "c.yaml", "c", Vocabulary{});
  for (const auto& error : loaded.errors) ADD_FAILURE() << error.Text();
  return loaded.cases.at(0);
}

constexpr const char* kTwoSteps =
    "      - {op: mul, of: [x, x], as: square}\n      - {op: add, of: [square, x], as: y}\n";

TEST(Opened, ObservesEveryStepAndDemandsNothing) {
  const Case plain = Load(
      kTwoSteps, "y", "    contract: {status: documented, source: here, accept: {y: {dtype: float32}}}\n");
  const auto opened = Opened(plain);
  ASSERT_TRUE(opened);
  EXPECT_THAT(opened->observe, ElementsAre("y", "square"));
  EXPECT_EQ(opened->id, plain.id + "~opened");
  EXPECT_TRUE(opened->contract.values.empty());
  EXPECT_TRUE(IsOpened(*opened));
  EXPECT_FALSE(IsOpened(plain));
  EXPECT_FALSE(Opened(*opened)) << "an opened program is opened no further";
}

TEST(Opened, KeepsScopesAndIsRunAfterItsCase) {
  const Case plain = Load(
      "      - op: autocast\n        dtype: bfloat16\n        steps:\n          - {op: mul, of: [x, x], as: "
      "square}\n"
      "      - {op: add, of: [square, x], as: y}\n",
      "y");
  const auto all = WithCompanions({plain}, Steps::kOpened);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(all[1].observe, ElementsAre("y", "square"));
  EXPECT_EQ(all[1].program.size(), plain.program.size());
  EXPECT_EQ(WithCompanions({plain}, Steps::kTogether).size(), 1u);
}

TEST(Opened, NotWhereANameDoesNotStandForOneStep) {
  EXPECT_FALSE(Opened(Load("      - {op: mul, of: [x, x], as: y}\n", "y"))) << "a single step";
  EXPECT_FALSE(
      Opened(Load("      - {op: empty, shape: [4], dtype: float32, as: buffer}\n"
                  "      - {op: add, of: [x, x], out: buffer, as: y}\n",
                  "y")))
      << "out=";
  EXPECT_FALSE(Opened(
      Load("      - {op: mul, of: [x, 2], as: y}\n      - {op: \"aten::mul_\", of: [y, y], as: z}\n", "z")))
      << "in place";
  for (const char* op : {"aten::batch_norm", "aten::add.out"})
    EXPECT_FALSE(Opened(Load("      - {op: mul, of: [x, 2], as: y}\n      - {op: \"" + std::string(op) +
                                 "\", of: [y, y], as: z}\n",
                             "z")))
        << op;
}

TEST(Opened, OfAProgramThatDifferentiatesTheWayForward) {
  const std::string text =
      "cases:\n  - name: c\n    tensors:\n      x: {dtype: float32, shape: [4], fill: normal, requires_grad: "
      "true}\n"
      "    program:\n" +
      std::string(kTwoSteps) + "      - {op: backward, of: [y]}\n    observe: [y, x.grad]\n";
  LoadResult loaded = LoadCaseText(text, "c.yaml", "c", Vocabulary{});
  ASSERT_THAT(loaded.errors, ::testing::IsEmpty());
  const auto opened = Opened(loaded.cases.at(0));
  ASSERT_TRUE(opened);
  EXPECT_THAT(opened->observe, ElementsAre("y", "square"));
  EXPECT_EQ(opened->program.size(), 3u);
}

TEST(Opened, DataThatIsReplacedIsAnOperandOfItsOwn) {
  // x is read as float32, then as bfloat16, then once more as the float32 that was kept.
  const Case plain = Load(
      "      - {op: detach, of: [x], as: kept}\n      - {op: set_data, of: [x], to: {cast: bfloat16}}\n"
      "      - {op: mul, of: [x, 2], as: y}\n      - {op: set_data, of: [x], to: {value: kept}}\n"
      "      - {op: mul, of: [x, 3], as: z}\n",
      "z");
  const auto opened = Opened(plain);
  ASSERT_TRUE(opened);
  EXPECT_THAT(opened->observe, ElementsAre("z", "kept", "y"));
  EXPECT_EQ(opened->program.size(), 5u) << "what runs is the program as it stands";
  TensorData x = TensorData::Zeros(DType::kFloat32, {4});
  x.Set(0, 1.00390625);  // a tie between two bfloat16 numbers: to the even one
  x.Set(1, 3);
  const SettledProgram settled = WithDataSet(*opened, {{"x", x}});
  const auto& steps = settled.program.program;
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].of[0].name, "x");
  const std::string version = steps[1].of[0].name;
  EXPECT_NE(version, "x");
  EXPECT_EQ(steps[2].of[0].name, "kept");
  EXPECT_EQ(settled.inputs.at("x"), x);
  const TensorData& cast = settled.inputs.at(version);
  EXPECT_EQ(cast.dtype, DType::kBfloat16);
  EXPECT_EQ(cast.At(0), 1);
  EXPECT_EQ(cast.At(1), 3);
  EXPECT_EQ(settled.program.FindTensor(version)->dtype, DType::kBfloat16);
}

TEST(Opened, DataThatNothingHasReadKeepsItsName) {
  const auto opened = Opened(Load(
      "      - op: no_grad\n        steps:\n          - {op: set_data, of: [x], to: {cast: bfloat16}}\n" +
          std::string(kTwoSteps),
      "y"));
  ASSERT_TRUE(opened);
  const SettledProgram settled = WithDataSet(*opened, {{"x", TensorData::Zeros(DType::kFloat32, {4})}});
  ASSERT_EQ(settled.program.program.size(), 2u) << "a scope around nothing is gone";
  EXPECT_EQ(settled.program.program[0].of[0].name, "x");
  EXPECT_EQ(settled.inputs.at("x").dtype, DType::kBfloat16);
  EXPECT_EQ(settled.program.tensors.size(), 1u);
}

TEST(Opened, NotWhereReplacedDataIsNotKnownBeforeTheRun) {
  EXPECT_FALSE(Opened(
      Load("      - {op: mul, of: [x, 2], as: y}\n      - {op: set_data, of: [x], to: {value: y}}\n"
           "      - {op: set_data, of: [x], to: {cast: bfloat16}}\n      - {op: mul, of: [x, 3], as: z}\n",
           "z")))
      << "a cast of what a step gave";
  EXPECT_FALSE(Opened(
      Load("      - {op: mul, of: [x, 2], as: y}\n      - {op: set_data, of: [y], to: {cast: bfloat16}}\n"
           "      - {op: mul, of: [y, 3], as: z}\n",
           "z")))
      << "y is not what its step gave";
  EXPECT_FALSE(IsOneStep(Load(
      "      - {op: set_data, of: [x], to: {cast: bfloat16}}\n      - {op: mul, of: [x, 2], as: y}\n", "y")));
}

TEST(Opened, AnOpOfTheDispatcherGivesAValueLikeAnyOther) {
  const auto opened = Opened(Load(
      "      - {op: mul, of: [x, 2], as: y}\n      - {op: \"aten::flip\", of: [y], dims: [0], as: turned}\n"
      "      - {op: add, of: [turned, x], as: z}\n",
      "z"));
  ASSERT_TRUE(opened);
  EXPECT_THAT(opened->observe, ElementsAre("z", "y", "turned"));
}

TEST(Opened, DemandedValuesAreThoseOfContractAndExpectations) {
  const Case plain = Load(kTwoSteps, "y, square",
                          "    contract: {status: unspecified, accept: any}\n"
                          "    expect: {jax: [{square: {dtype: float32}}]}\n");
  EXPECT_THAT(DemandedValues(plain), ElementsAre("square"));
}

}  // namespace
}  // namespace ulpscope
