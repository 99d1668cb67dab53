// What accumulators have in common, in words.
#include "harness/judge/label.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "harness/judge/contract.h"
#include "harness/words/facets.h"
#include "tests/support/models.h"

namespace ulpscope {
namespace {

std::string Label(const ValueShape& shape, DType observed, Classification found) {
  SetLabel(shape, observed, ErrorsOf::kThisStep, &found);
  return found.label;
}

TEST(Label, SaysWhoseFormatItNames) {
  for (const bool sums : {true, false}) {
    ValueShape shape;
    shape.name = "y";
    shape.has_steps = !sums;
    shape.reduction_length = sums ? 8 : 0;
    for (const auto& [acc, named] : {std::pair{"float32", true}, {"exact", false}}) {
      Classification found;
      found.kind = ClassificationKind::kIdentified;
      found.models = {testing::Model(acc, "none")};
      ProjectFacets(shape, &found);
      SetLabel(shape, DType::kFloat32, ErrorsOf::kThisStep, &found);
      EXPECT_EQ(found.labelled, !named ? FormatOfWhat::kNothing
                                : sums ? FormatOfWhat::kSums
                                       : FormatOfWhat::kSteps)
          << found.label;
      found.kind = ClassificationKind::kUnmodelled;
      SetLabel(shape, DType::kFloat32, ErrorsOf::kThisStep, &found);
      EXPECT_EQ(found.labelled, FormatOfWhat::kNothing) << found.label;
    }
  }
}

TEST(Label, StepsInsideAreNamedWithTheirFormats) {
  ValueShape shape;
  shape.name = "p";
  shape.has_steps = true;
  shape.cut_points = {"p.exp_in_numerator", "p.total"};
  const auto label = [&](const testing::Named& cuts) {
    PrecisionModel model;
    model.acc = testing::Acc("float32");
    model.mid = testing::Mid(cuts.empty() ? "none" : "float16");
    model.out = testing::Out("float16_rne");
    model.cuts = testing::Cuts(cuts);
    Classification found;
    found.kind = ClassificationKind::kIdentified;
    found.models = {model};
    ProjectFacets(shape, &found);
    return Label(shape, DType::kFloat16, std::move(found));
  };
  EXPECT_EQ(label({}), "each step in float32, stored float16");
  EXPECT_EQ(label({{"p.exp_in_numerator", "float16"}}),
            "each step in float32, the exp in numerator inside rounded to float16, stored float16");
  EXPECT_EQ(label({{"p.exp_in_numerator", "float16"}, {"p.total", "float16"}}),
            "each step inside rounded to float16, stored float16");
  // Beside a step inside, the value itself before its store.
  EXPECT_EQ(
      label({{"p.total", "float16"}, {"p", "tf32"}}),
      "each step in float32, the total inside rounded to float16, rounded through tf32, stored float16");
}

TEST(Label, RunsOfBitsAreToldByTheirEnds) {
  ValueShape shape;
  shape.name = "y";
  shape.reduction_length = 8;
  Classification found;
  found.kind = ClassificationKind::kIndistinguishable;
  for (const char* mid : {"none", "p11", "p12", "p20", "p21", "p22", "p23"}) {
    PrecisionModel model;
    model.acc = testing::Acc("float32");
    model.mid = testing::Mid(mid);
    found.models.push_back(model);
  }
  ProjectFacets(shape, &found);
  EXPECT_EQ(Label(shape, DType::kFloat32, found),
            "accumulated in float32, rounded through one of none, p11, p12 or p20 to p23, stored float32");
}

TEST(Label, OperandsInFormatsThatNoRoundingOnTheWayHas) {
  ValueShape shape;
  shape.name = "y";
  shape.operands = {"b"};
  shape.has_products = true;
  shape.reduction_length = 8;
  Classification found;
  found.kind = ClassificationKind::kIndistinguishable;
  for (const char* in : {"p20_rz", "p21_rne", "p21_rz"}) {
    PrecisionModel model;
    model.in = testing::Ins({{"b", in}});
    model.acc = testing::Acc("float32");
    model.out = testing::Out("float32_rne");
    found.models.push_back(model);
  }
  ProjectFacets(shape, &found);
  const std::string label = Label(shape, DType::kFloat32, found);
  EXPECT_NE(label.find("operand b one of p20_rz, p21_rne or p21_rz"), label.npos) << label;
}

TEST(Label, WhatIsFurtherThanHalfAUnitAwayWasNotRoundedOnce) {
  ValueShape shape;
  shape.name = "y";
  Classification found;
  found.kind = ClassificationKind::kExactOnly;
  found.max_ulp = 0.5;
  EXPECT_EQ(Label(shape, DType::kFloat32, found), "stored float32, rounded once");
  found.max_ulp = 0.73;
  SetLabel(shape, DType::kFloat32, ErrorsOf::kSeveralSteps, &found);
  EXPECT_EQ(found.label, "stored float32, rounded once") << "the errors are those of the steps before it";
  EXPECT_EQ(Label(shape, DType::kFloat32, found), "stored float32, up to 0.73 ulp from the exact value");
  found.max_ulp = 0;
  EXPECT_EQ(Label(shape, DType::kFloat32, found), "exact: every model gives these bits");
}

TEST(JoinAccumulators, WideOnesAreWideTogether) {
  EXPECT_EQ(JoinAccumulators({}), "");
  EXPECT_EQ(JoinAccumulators(testing::Accs({"float32_rz"})), "float32_rz");
  EXPECT_EQ(
      JoinAccumulators(testing::Accs({"float32", "float64", "exact", "compensated", "blockfma(8,24,rz)"})),
      "float32 or wider");
  EXPECT_EQ(JoinAccumulators(testing::Accs({"float32+ftz", "float32_rz"})), "float32 or wider");
}

TEST(JoinAccumulators, ABlockUnitOfFewerBitsIsNotWide) {
  EXPECT_EQ(JoinAccumulators(testing::Accs({"float32", "blockfma(8,24,rne_float16)"})),
            "a format that these inputs do not determine");
  EXPECT_EQ(JoinAccumulators(testing::Accs({"float32", "blockfma(32,13,rz)"})),
            "a format that these inputs do not determine");
  EXPECT_EQ(JoinAccumulators(testing::Accs({"float16", "float16_via_float32", "blockfma(8,24,rne_float16)"})),
            "float16");
  EXPECT_EQ(JoinAccumulators(testing::Accs({"bfloat16", "blockfma(8,24,rne_float16)"})), "16 bits");
  EXPECT_EQ(JoinAccumulators(testing::Accs({"float16", "blockfma(32,13,rz)"})),
            "a format that these inputs do not determine")
      << "14 bits are more than float16 has";
}

TEST(JoinAccumulators, NarrowOnes) {
  EXPECT_EQ(JoinAccumulators(testing::Accs({"bfloat16", "bfloat16_via_float32"})), "bfloat16");
  EXPECT_EQ(JoinAccumulators(testing::Accs({"bfloat16", "float16"})), "16 bits");
  EXPECT_EQ(JoinAccumulators(testing::Accs({"bfloat16", "split_k(bfloat16,float32)"})), "16 bits");
  EXPECT_EQ(JoinAccumulators(testing::Accs({"float32", "bfloat16"})),
            "a format that these inputs do not determine");
}

TEST(JoinAccumulators, UnitsThatDifferInSizeAlone) {
  EXPECT_EQ(JoinAccumulators(testing::Accs({"blockfma(16,25,rz)", "blockfma(8,25,rz)"})),
            "blockfma(n>=8,25,rz)");
  EXPECT_EQ(JoinAccumulators(testing::Accs({"blockfma(16,25,rz)", "blockfma(8,25,rz)"}), 4),
            "blockfma(n>=4,25,rz)")
      << "four products show a unit of four or more";
  EXPECT_EQ(JoinAccumulators(testing::Accs({"blockfma(16,25,rz)", "blockfma(8,24,rz)"})), "float32 or wider");
  EXPECT_EQ(JoinAccumulators(testing::Accs({"blockfma(16,25,rz)", "float32"})), "float32 or wider");
}

TEST(ContainsAccumulator, ClassesHoldWhatKeepsTheirBits) {
  const auto inside = [](const std::string& name, const std::string& acc) {
    return ContainsAccumulator({name}, testing::Acc(acc));
  };
  int in_float32_class = 0, at_least = 0;
  for (const auto& word : AccWords()) {
    const AccSpec acc = *ParseAcc(word);
    const bool split = acc.partial != nullptr;
    EXPECT_EQ(inside("at_least_float32", word), !split && acc.bits() >= 24) << word;
    EXPECT_TRUE(!inside("float32_class", word) || inside("at_least_float32", word)) << word;
    in_float32_class += inside("float32_class", word) ? 1 : 0;
    at_least += inside("at_least_float32", word) ? 1 : 0;
    EXPECT_EQ(inside("blockfma", word), acc.block > 0) << word;
  }
  EXPECT_EQ(at_least, in_float32_class + 3) << "exact, float64 and compensated";
  for (const char* drops : {"float32+ftz", "float32_rz+ftz", "float64+ftz"}) {
    EXPECT_FALSE(inside("at_least_float32", drops))
        << "a sum that drops subnormals has not all numbers of float32";
    EXPECT_TRUE(ContainsAccumulator({"at_least_float32", drops}, testing::Acc(drops)));
  }
  EXPECT_TRUE(inside("float32_class", "float32_rz"));
  EXPECT_FALSE(inside("at_least_float32", "blockfma(8,24,rne_float16)"));
  EXPECT_FALSE(inside("at_least_float32", "blockfma(32,20,rz)"));
  EXPECT_TRUE(inside("blockfma(8,24,rz)", "blockfma(8,24,rz)"));
}

}  // namespace
}  // namespace ulpscope
