// Cells: each notation, and that joint sets are not read facet by facet.
#include "reports/cell.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "harness/words/facets.h"
#include "tests/reports/sample.h"
#include "tests/support/models.h"

namespace ulpscope {
namespace {

using testing::Model;
using testing::Value;

std::string Cell(std::vector<PrecisionModel> models, DType dtype = DType::kFloat32) {
  return CellText(Value(std::move(models), dtype));
}

TEST(ErrorText, AStepHasTwoErrors) {
  Classification step;
  step.max_ulp = 592.2;
  EXPECT_EQ(ErrorText(step), "at most 592.2 ulp from the exact value");
  step.piece = "step y";
  step.step_ulp = 0.5;
  EXPECT_EQ(ErrorText(step),
            "at most 0.5 ulp from the exact result of its operands, 592.2 from that of the program");
}

TEST(Cell, WhereItWasRoundedLastStoreLast) {
  EXPECT_EQ(Cell({Model("float32", "none")}), "f32");
  EXPECT_EQ(Cell({Model("float32", "bfloat16")}), "f32>bf16>f32");
  EXPECT_EQ(Cell({Model("float32", "none", "bfloat16_rne")}), "f32>bf16");
  EXPECT_EQ(Cell({Model("bfloat16_via_float32", "none", "bfloat16_rne")}), "bf16");
  EXPECT_EQ(Cell({Model("bfloat16", "none")}), "bf16>f32");
  EXPECT_EQ(Cell({Model("float64", "none")}), "f64>f32");
  EXPECT_EQ(Cell({Model("float32_rz+ftz", "p12", "float16_rz+ftz")}), "f32rzftz>p12>f16rzftz");
  EXPECT_EQ(Cell({Model("blockfma(8,24,rz)", "none")}), "bfma24>f32");
  EXPECT_EQ(Cell({Model("split_k(bfloat16,float32)", "none")}), "split(bf16)>f32");
}

TEST(Cell, ASumOfFewerBitsThanFloat32IsNotCalledFloat32) {
  // Units with float16 sums, and one that cuts at 13 bits: hidden behind no float32 store, whatever F says.
  EXPECT_EQ(Cell({Model("blockfma(8,24,rne_float16)", "none")}), "bfma24f16>f32");
  EXPECT_EQ(Cell({Model("float32", "none"), Model("blockfma(8,24,rne_float16)", "none")}),
            "f32..bfma24f16?>f32");
  EXPECT_EQ(Cell({Model("float32", "none"), Model("blockfma(32,13,rz)", "none")}), "f32..bfma13?>f32");
  EXPECT_EQ(Cell({Model("float32", "none"), Model("blockfma(8,24,rz)", "none")}), "f32");
}

TEST(Cell, PiecesOfAnOperandCountTogether) {
  PrecisionModel model = Model("float32", "none");
  model.in = testing::Ins({{"x", "bf16x3"}, {"y", "tf32_rne"}});
  EXPECT_EQ(Cell({model}), "(tf32)>f32") << "two pieces of bfloat16 have 16 bits, tf32 11";
  model.in = testing::Ins({{"x", "bf16x3"}, {"y", "bf16x6"}});
  EXPECT_EQ(Cell({model}), "(bf16x3)>f32");
  model.in = testing::Ins({{"x", "as_is+daz"}});
  EXPECT_EQ(Cell({model}), "(daz)>f32");
}

TEST(Cell, OperandsProductsAndCuts) {
  PrecisionModel model = Model("float32", "none");
  model.in = testing::Ins({{"x", "tf32_rna"}, {"y", "bfloat16_rne"}});
  EXPECT_EQ(Cell({model}), "(bf16)>f32") << "the narrowest operand";
  model.in.clear();
  model.prod = testing::Prod("float16");
  EXPECT_EQ(Cell({model}), "*f16>f32");
  model.prod = testing::Prod("exact");
  model.cuts = testing::Cuts({{"hidden", "bfloat16"}});
  EXPECT_EQ(Cell({model}), "(bf16)>f32") << "an intermediate that feeds the sums";
  EXPECT_EQ(Cell({model, Model("float32", "none")}), "f32") << "left out where it cannot be told";
  ValueResult pointwise = Value({model});
  pointwise.classification.facets.acc.clear();
  EXPECT_EQ(CellText(pointwise), "bf16>f32") << "where nothing is summed it is a rounding on the way";
  pointwise.classification.models[0].out = testing::Out("bfloat16_rne");
  EXPECT_EQ(CellText(pointwise), "bf16>bf16") << "twice, not once";
  pointwise.classification.models[0].cuts.clear();
  EXPECT_EQ(CellText(pointwise), "bf16");
  pointwise.classification.models.push_back(pointwise.classification.models[0]);
  pointwise.classification.models[1].mid = testing::Mid("float32");
  EXPECT_EQ(CellText(pointwise), "bf16") << "wide, then once";
}

TEST(Cell, OperandsStayInParenthesesWhateverTheyAreRoundedTo) {
  PrecisionModel half = Model("float32", "none"), tf32 = half;
  half.in = testing::Ins({{"x", "float16_rne"}});
  tf32.in = testing::Ins({{"x", "tf32_rna"}});
  EXPECT_EQ(Cell({half, tf32}), "(f16|tf32rna?)>f32");
  PrecisionModel away = tf32;
  tf32.in = testing::Ins({{"x", "tf32_rne"}});
  EXPECT_EQ(Cell({half, tf32, away}), "(f16|tf32?)>f32");
}

TEST(Cell, WhatCannotBeToldApart) {
  EXPECT_EQ(Cell({Model("float32", "none"), Model("float64", "none")}), "f32")
      << "float32 or wider into a float32 store";
  EXPECT_EQ(
      Cell({Model("float32", "none"), Model("float32_rz", "none"), Model("float32", "none", "float32_rz")}),
      "f32");
  EXPECT_EQ(Cell({Model("float32", "none", "float32_rz")}), "f32>f32rz") << "where it is known, it is said";
  EXPECT_EQ(Cell({Model("float32", "none", "float16_rna"), Model("float32", "none", "float16_rne"),
                  Model("bfloat16", "none", "float16_rz")}),
            "f32>f16")
      << "a cell shows the usual store where it explains as much";
  PrecisionModel cut = Model("exact", "none");
  cut.cuts = testing::Cuts({{"hidden", "float32"}});
  EXPECT_EQ(Cell({Model("float32", "none"), cut, Model("float64", "none")}), "f32")
      << "nothing narrower than the store";
  EXPECT_EQ(Cell({Model("float32", "none", "bfloat16_rne"), Model("exact", "none", "bfloat16_rne"),
                  Model("blockfma(8,24,rz)", "none", "bfloat16_rne")}),
            "f32>bf16");
  EXPECT_EQ(Cell({Model("float32", "bfloat16"), Model("float64", "bfloat16")}), "f32>bf16>f32");
  EXPECT_EQ(Cell({Model("exact", "float32", "bfloat16_rne"), Model("float32", "none", "bfloat16_rne")}),
            "f32>bf16");
  EXPECT_EQ(Cell({Model("float32", "bfloat16"), Model("bfloat16", "none")}), "bf16?>f32");
  EXPECT_EQ(Cell({Model("float32", "none"), Model("float16", "none")}), "f32..f16?>f32");
  EXPECT_EQ(Cell({Model("float32", "none", "bfloat16_rne"), Model("bfloat16", "none", "bfloat16_rne")}),
            "bf16?");
}

TEST(Cell, BasisAndKinds) {
  ValueResult value = Value({Model("float32", "none")});
  value.classification.rests_on_likelihood = true;
  EXPECT_EQ(CellText(value), "f32~");
  EXPECT_EQ(CellText(Value({})), "unmodelled");
  value.classification.kind = ClassificationKind::kExactOnly;
  value.classification.max_ulp = 0;
  EXPECT_EQ(CellText(value), "=f32");
  // One rounding of a function, alike in every model, is no exact value.
  value.classification.max_ulp = 0.5;
  EXPECT_EQ(CellText(value), "f32");
  value.classification.kind = ClassificationKind::kNoReference;
  EXPECT_EQ(CellText(value), "[f32]");
  value.classification.kind = ClassificationKind::kNotFloating;
  value.dtype = DType::kInt64;
  EXPECT_EQ(CellText(value), "=i64") << "compared with the exact numbers";
  value.classification.checked = 0;
  EXPECT_EQ(CellText(value), "i64");
  value.classification.kind = ClassificationKind::kWrongValue;
  EXPECT_EQ(CellText(value), "value!");
}

TEST(Cell, FacetsThatDoNotApplyAreLeftOut) {
  ValueResult value = Value({Model("float32", "none", "bfloat16_rne")});
  value.classification.facets.acc.clear();
  EXPECT_EQ(CellText(value), "bf16") << "a cast has no accumulator";
}

bool Explains(const std::vector<std::string>& legend, const std::string& mark) {
  return std::any_of(legend.begin(), legend.end(),
                     [&](const auto& entry) { return entry.starts_with(mark + " "); });
}

TEST(Cell, EveryMarkIsInTheLegend) {
  for (const std::string mark : {"a>b", "(a)", "*a", "f32", "a..b?", "~", "=a", "[a]", "?a", "-", "A"})
    EXPECT_TRUE(Explains(CellLegend(), mark)) << mark;
}

TEST(Cell, RareMarksAreInTheLegendWhereTheyAreShown) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> shown{
      {"bf16? A", {"a?"}},
      {"(f16|tf32?)>f32", {"a?", "a|b"}},
      {"f32..bf16?>f32", {}},
      {"?bf16 B", {}},
      {"f32>bf16~ A FAIL", {}},
      {"f32rzftz>p12>f16rzftz", {"rz", "ftz", "pN"}},
      {"bfma24f16>f16rna", {"bfmaN", "rna"}},
      {"(bf16x3)>f32", {"axN"}},
      {"split(bf16)>f32", {"split(a)"}},
      {"(daz)>f32", {"daz"}},
      {"unmodelled", {"unmodelled"}}};
  for (const auto& [cell, marks] : shown) {
    const auto legend = CellLegend({cell});
    EXPECT_EQ(legend.size(), CellLegend().size() + marks.size()) << cell;
    for (const auto& mark : marks) EXPECT_TRUE(Explains(legend, mark)) << cell << ": " << mark;
  }
}

/// The cell without what the legend of all matrices explains, and names of formats; "" where nothing is left unexplained.
std::string Unexplained(const std::string& cell) {
  std::string rest = cell;
  const auto drop = [&](const std::string& pattern) {
    rest = std::regex_replace(rest, std::regex(pattern), "");
  };
  for (const auto& entry : CellLegend({cell})) {
    const std::string mark = entry.substr(0, entry.find(' '));
    if (mark == "pN" || mark == "bfmaN") drop(mark.substr(0, mark.size() - 1) + "[0-9]+");
    if (mark == "axN") drop("x[0-9]");
    if (mark == "split(a)") drop("split");
    if (std::all_of(mark.begin(), mark.end(), [](char c) { return c >= 'a' && c <= 'z'; })) drop(mark);
  }
  drop("(t|b)?f(8|16|32|64)(e[0-9]m[0-9](fn)?)?");
  drop("[>().*~?]");
  return rest;
}

TEST(Cell, EveryWordOfAModelIsExplainedWhereItIsShown) {
  size_t checked = 0;
  const auto check = [&](const PrecisionModel& model) {
    const std::string cell = Cell({model});
    EXPECT_EQ(Unexplained(cell), "") << cell;
    ++checked;
  };
  for (const auto& word : AccWords()) {
    for (const std::string flush : {"", "+ftz"}) {
      if (word != "exact" || flush.empty()) check(Model(word + flush, "none"));
    }
  }
  for (const auto& word : InWords()) {
    PrecisionModel model = Model("float32", "none");
    model.in = testing::Ins({{"x", word}});
    check(model);
  }
  for (const auto& word : ProdWords()) {
    PrecisionModel model = Model("float32", "none");
    model.prod = testing::Prod(word);
    check(model);
  }
  for (const auto& word : MidWords()) check(Model("float32", word));
  for (const std::string out : {"bfloat16_rz", "float16_rna", "float32_odd", "float16_rz+ftz"})
    check(Model("float32", "p12", out));
  EXPECT_GT(checked, 30u);
}

}  // namespace
}  // namespace ulpscope
