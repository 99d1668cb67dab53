// The table of knobs: three columns for every value asked, and a sentence for every effect.
#include "reports/knobs.h"

#include <gtest/gtest.h>

#include "reports/console.h"
#include "tests/reports/sample.h"

namespace ulpscope {
namespace {

using Effect = KnobEffect::Effect;
using ReadBack = KnobEffect::ReadBack;

TEST(KnobTable, ShowsAskedReadBackAndEffect) {
  EXPECT_EQ(WriteKnobTable(testing::SampleReport(), 120),
            "knobs            asked  read back      effect\n"
            "torch-aot-eager\n"
            "  mkldnn         off    off            acts in 2 of 3 cases; knobs/products/bfloat16: bits of "
            "product: "
            "2 of 4096, at\n"
            "                                       most 1 ulp\n"
            "  deterministic  on     off (differs)  accepted, no effect seen in 3 cases\n"
            "custom\n"
            "  mode?[2J       on     -              refused: knob mode=on: expected one of a b\n"
            "\n");
}

TEST(KnobTable, IsNotThereWithoutKnobs) {
  RunReport report = testing::SampleReport();
  report.knobs.clear();
  EXPECT_EQ(WriteKnobTable(report, 120), "");
  EXPECT_EQ(WriteConsole(report, {}).find("read back"), std::string::npos);
}

TEST(KnobTable, StandsInThePlaceOfTheMatrixInASweepAlone) {
  const RunReport report = testing::SampleReport();
  const std::string run = WriteConsole(report, {});
  EXPECT_NE(run.find("f32>bf16"), std::string::npos);
  EXPECT_EQ(run.find("read back"), std::string::npos);
  ConsoleOptions sweep;
  sweep.subject = ConsoleOptions::Subject::kKnobs;
  const std::string table = WriteConsole(report, sweep);
  EXPECT_NE(table.find("read back"), std::string::npos);
  EXPECT_EQ(table.find("f32>bf16"), std::string::npos);
  sweep.verbosity = ConsoleOptions::Verbosity::kVerbose;
  EXPECT_NE(WriteConsole(report, sweep).find("f32>bf16"), std::string::npos);
}

TEST(KnobSentence, HasWordsForEveryEffect) {
  KnobEffect effect;
  effect.compared = effect.acted = 1;
  const auto sentence = [&](Effect kind) {
    effect.effect = kind;
    return KnobSentence(effect);
  };
  EXPECT_EQ(sentence(Effect::kActs), "acts in 1 of 1 case");
  EXPECT_EQ(sentence(Effect::kTraceOnly), "no value changes, what the graph says does in 1 of 1 case");
  EXPECT_EQ(sentence(Effect::kNoEffect), "accepted, no effect seen in 1 case");
  EXPECT_EQ(sentence(Effect::kAsWithout), "is what stands without it; no effect in 1 case");
  EXPECT_EQ(sentence(Effect::kNotCompared), "nothing to compare with");
  effect.what = "not said";
  EXPECT_EQ(sentence(Effect::kRefused), "refused: not said");
  EXPECT_EQ(sentence(Effect::kNotCompared), "nothing to compare: not said");
}

TEST(KnobReadBack, SaysWhatWasNotReadBack) {
  KnobEffect effect;
  effect.effect = Effect::kNoEffect;
  EXPECT_EQ(KnobReadBack(effect), "not read back");
  effect.effective = {"a", "b"};
  effect.read_back = ReadBack::kAsAsked;
  EXPECT_EQ(KnobReadBack(effect), "a, b");
}

}  // namespace
}  // namespace ulpscope
