// What is said of ledgers.
#include "reports/ledger.h"

#include <gtest/gtest.h>

#include "reports/explain.h"
#include "tests/reports/sample.h"

namespace ulpscope {
namespace {

TEST(Percent, HasTwoDigitsAndNoFalseWhole) {
  EXPECT_EQ(Percent(0.75), "75 %");
  EXPECT_EQ(Percent(-0.333), "-33 %");
  EXPECT_EQ(Percent(1), "100 %");
  EXPECT_EQ(Percent(0.9999), "99.99 %");
  EXPECT_EQ(Percent(0.04), "4 %");
  EXPECT_EQ(Percent(1e-9), "less than 0.1 %");
  EXPECT_EQ(Percent(0), "0 %");
}

TEST(LedgerSummary, SaysWhatIsNotExplainedBeforeAnythingElse) {
  RunReport report = testing::SampleReport();
  EXPECT_EQ(LedgerSummary(report), "25 % of the difference of result is not explained");
  report.ledgers[0].entries.pop_back();
  report.ledgers[0].entries[0].share = 1;
  EXPECT_EQ(LedgerSummary(report), "every difference is rounding: 1 cause explains all of it");
  report.ledgers[0].entries[0].causes[0].kind = DivergenceKind::kOrder;
  EXPECT_EQ(LedgerSummary(report),
            "every difference is order of summation or last bits: 1 cause explains all of it");
  report.ledgers.clear();
  EXPECT_EQ(LedgerSummary(report), "");
}

TEST(WeightOf, AFindingWeighsWhatTheEntriesOfItsStepDo) {
  RunReport report = testing::SampleReport();
  const Divergence& precision = report.divergences[1];
  EXPECT_DOUBLE_EQ(WeightOf(report, precision).share, 0.75);
  EXPECT_EQ(WeightText(WeightOf(report, precision)), "75 % of the difference of result");
  EXPECT_EQ(WeightText(WeightOf(report, report.divergences[0])), "")
      << "torch-eager raised: it is in no ledger";
  Divergence elsewhere = precision;
  elsewhere.value = "bias";
  elsewhere.also.clear();
  EXPECT_TRUE(WeightOf(report, elsewhere).moves_nothing);
  report.ledgers[0].left_out = "its steps cannot be observed";
  EXPECT_FALSE(WeightOf(report, elsewhere).moves_nothing) << "what is booked as a whole may rest on it";
}

TEST(ByWeight, TheHeaviestOfACaseComesFirst) {
  RunReport report = testing::SampleReport();
  report.divergences.resize(2);
  Divergence light = report.divergences[1];
  light.value = "bias";
  light.also.clear();
  report.divergences.insert(report.divergences.begin(), light);
  const auto ordered = ByWeight(report);
  EXPECT_EQ(ordered[0].divergence->kind, DivergenceKind::kOutcome)
      << "a refusal has no share, and comes first";
  EXPECT_EQ(ordered[1].divergence->value, "product");
  EXPECT_EQ(ordered[2].divergence->value, "bias");
}

TEST(LedgerText, NamesStepsSharesAndTheNearerSide) {
  const RunReport report = testing::SampleReport();
  const Ledger& ledger = report.ledgers[0];
  EXPECT_EQ(NearnessText(ledger),
            "openblas is nearer to exact: rms 0.1 against 0.3 of torch-aot-eager, of values of rms 8");
  EXPECT_EQ(EntriesText(ledger).find("2 of 4 steps differ: product 75 %, "), 0u) << EntriesText(ledger);
  EXPECT_NE(EntriesText(ledger).find("25 % (not explained)"), std::string::npos);
  EXPECT_EQ(
      RemedyTexts(ledger),
      std::vector<std::string>{"with mkldnn=off torch-aot-eager differs in 0 of 224 elements (63 without)"});
  const auto causes = CauseTexts(ledger, {});
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_EQ(causes[0], "75 % of the difference: " + ledger.entries[0].causes[0].sentence);
  EXPECT_EQ(causes[1], "25 % of the difference, in <b>\033[2J: no cause is known.")
      << "it is escaped where it is printed";
  EXPECT_EQ(CauseTexts(ledger, report.divergences), std::vector<std::string>{causes[1]})
      << "the first is a finding already";
}

LedgerEntry EntryOf(const std::string& step, double share, const std::string& module, int64_t line) {
  return {.step = step,
          .share = share,
          .moved = 1,
          .causes = {{.backend = "b",
                      .kind = DivergenceKind::kPrecision,
                      .is_explained = true,
                      .sentence = "b rounds no intermediate when computing " + step + ".",
                      .does = "rounds no intermediate",
                      .carrier_does = "rounds each step"}},
          .at = {.module = module, .file = "model.py", .line = line},
          .layers = module.ends_with("norm") ? 2 : 1};
}

Divergence DivergenceOf(DivergenceKind kind, const std::string& value) {
  Divergence divergence;
  divergence.case_id = "c";
  divergence.kind = kind;
  divergence.backends = {{"a"}, {"b"}};
  divergence.value = value;
  divergence.sentence = "b likely computes otherwise.";
  return divergence;
}

TEST(FoldCauses, StepsOfOneCauseAreOneAndRepeatedLayersOnePlace) {
  Ledger ledger{.case_id = "c", .value = "y", .backends = {{"a"}, {"b"}}, .steps = 5};
  ledger.entries = {EntryOf("h", 0.25, "layers.0.norm", 7),
                    EntryOf("h_2", 0.5, "layers.1.norm", 7),
                    EntryOf("g", 0.125, "layers.1.mlp", 9),
                    {.step = "z", .share = 0.125, .moved = 1}};
  const auto folded = FoldCauses(ledger);
  ASSERT_EQ(folded.size(), 2u);
  EXPECT_DOUBLE_EQ(folded[0].share, 0.875);
  EXPECT_EQ(folded[0].entries.front()->step, "h_2") << "the heaviest speaks for the others";
  EXPECT_EQ(
      PlaceTexts(folded[0]),
      (std::vector<std::string>{"75 %  h_2, layers.1.norm, model.py:7; in 2 of 2 layers, most of it here",
                                "12 %  g, layers.1.mlp, model.py:9"}));
  EXPECT_EQ(
      CauseTexts(ledger, {}),
      (std::vector<std::string>{
          "88 % of the difference: b rounds no intermediate when computing h_2. The same in 2 more steps.",
          "  75 %  h_2, layers.1.norm, model.py:7; in 2 of 2 layers, most of it here",
          "  12 %  g, layers.1.mlp, model.py:9", "12 % of the difference, in z: no cause is known."}));
  for (LedgerEntry& entry : ledger.entries) {
    entry.at.module.clear();
    entry.layers = 1;
  }
  EXPECT_EQ(PlaceTexts(FoldCauses(ledger)[0])[0],
            "75 %  h_2, model.py:7; in 2 steps of this source line, most of it here")
      << "a line that runs twice is no layer";
  // What the sides do otherwise tells causes apart, not the names in their sentences.
  ledger.entries[2].causes[0].does = "rounds g alone";
  EXPECT_EQ(FoldCauses(ledger).size(), 3u);
}

TEST(ByWeight, FindingsOfOneCauseAreOne) {
  RunReport report;
  report.ledgers = {{.case_id = "c", .value = "y", .backends = {{"a"}, {"b"}}, .carrier = "a", .steps = 3}};
  report.ledgers[0].entries = {EntryOf("h", 0.25, "", 0), EntryOf("k", 0.75, "", 0)};
  for (const char* step : {"h", "k"})
    report.divergences.push_back(DivergenceOf(DivergenceKind::kPrecision, step));
  auto folded = ByWeight(report);
  ASSERT_EQ(folded.size(), 1u);
  EXPECT_EQ(folded[0].divergence->value, "k");
  EXPECT_EQ(folded[0].LikewiseText(), " b does the same in h (25 % of the difference of y).");
  report.ledgers[0].entries[0].causes[0].does = "another";
  EXPECT_EQ(ByWeight(report).size(), 2u);
}

TEST(WeightOf, ThatAnObservedValueDiffersIsAllOfIt) {
  RunReport report;
  report.ledgers = {{.case_id = "c", .value = "y", .backends = {{"a"}, {"b"}}, .carrier = "a", .steps = 3}};
  report.ledgers[0].entries = {EntryOf("h", 1, "", 0)};
  const Divergence value = DivergenceOf(DivergenceKind::kValue, "y");
  EXPECT_DOUBLE_EQ(WeightOf(report, value).share, 1);
  EXPECT_FALSE(WeightOf(report, value).moves_nothing);
}

TEST(Explain, ShowsTheLedgersThatTheBackendIsIn) {
  const RunReport report = testing::SampleReport();
  for (const auto verbosity : {ConsoleOptions::Verbosity::kNormal, ConsoleOptions::Verbosity::kVerbose}) {
    ConsoleOptions options;
    options.verbosity = verbosity;
    size_t shown = 0, others = 0;
    for (const CaseResult& result : report.results) {
      const std::string text = WriteExplanation(report, result, {.about = "", .source = ""}, options);
      const bool has = text.find("torch-aot-eager against openblas: 2 of 4 steps") != std::string::npos;
      const bool is_in = result.backend == "torch-aot-eager" || result.backend == "openblas";
      EXPECT_EQ(has, is_in && result.id == report.ledgers[0].case_id) << result.backend << "\n" << text;
      ++(has ? shown : others);
    }
    EXPECT_EQ(shown, 2u);
    EXPECT_GT(others, 0u);
  }
}

TEST(RemedyTexts, WhatLeavesAsManyIsOneLine) {
  Ledger ledger{.case_id = "c", .value = "y", .backends = {{"a"}, {"b"}}, .elements = 10, .differing = 4};
  ledger.remedies = {{.backend = "b", .setting = "x=1", .source = "s", .differing = 0},
                     {.backend = "b", .setting = "x=2", .source = "s", .differing = 4},
                     {.backend = "b", .setting = "x=3", .source = "s", .differing = 9}};
  EXPECT_EQ(RemedyTexts(ledger),
            (std::vector<std::string>{"with x=1 b differs in 0 of 10 elements (4 without)",
                                      "no fewer elements differ with x=2 (b), x=3 (b)"}));
}

TEST(StepOrigin, NumbersOfLayersAreMasked) {
  const StepOrigin origin{.module = "model.layers.12.self_attn.k2", .file = "m.py", .line = 3};
  EXPECT_EQ(origin.Text(), "model.layers.12.self_attn.k2, m.py:3");
  EXPECT_EQ(origin.OfAnyLayer().module, "model.layers.*.self_attn.k2");
  EXPECT_EQ(StepOrigin{.module = "0"}.OfAnyLayer().module, "*");
  EXPECT_EQ((StepOrigin{.file = "src/pkg/m.py", .line = 3}).Text(), "m.py:3");
  EXPECT_EQ(StepOrigin{}.Text(), "");
}

}  // namespace
}  // namespace ulpscope
