// The table of knobs: who takes what, with which values.
#include "harness/words/knobs.h"

#include <gtest/gtest.h>

#include <set>

namespace ulpscope {
namespace {

TEST(Knobs, EachStandsOnceAndTakesItsOwnValues) {
  std::set<std::string_view> names;
  for (const KnobRow& row : KnobRows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.takers.empty()) << row.name;
    EXPECT_FALSE(row.about.empty()) << row.name;
    if (row.form != KnobRow::Form::kListed) continue;
    ASSERT_FALSE(row.values.empty()) << row.name;
    for (const std::string& value : row.values)
      EXPECT_TRUE(CheckKnobValue(row.name, value)) << row.name << value;
    EXPECT_FALSE(CheckKnobValue(row.name, "no-such-value")) << row.name;
  }
  EXPECT_GT(names.size(), 20u);
}

TEST(Knobs, ACountIsAPositiveInteger) {
  for (const char* value : {"1", "2", "16", "999"}) EXPECT_TRUE(CheckKnobValue("threads", value)) << value;
  for (const char* value : {"N", "0", "-1", "01", "1.5", "", "1000", "many"})
    EXPECT_FALSE(CheckKnobValue("threads", value)) << value;
  EXPECT_TRUE(CheckKnobValue("of_another_adapter", "anything"));
}

TEST(Knobs, ABackendIsOfferedWhatItTakesOnItsDevice) {
  const auto on_cpu = KnobsTakenBy("torch-eager", "cpu"), on_cuda = KnobsTakenBy("torch-eager", "cuda:1");
  EXPECT_EQ(on_cuda.size(), on_cpu.size() + 1);
  EXPECT_EQ(on_cuda.at("reduced_precision_reduction").front(), "default");
  EXPECT_FALSE(on_cpu.contains("reduced_precision_reduction"));
  EXPECT_FALSE(KnobsTakenBy("torch-aoti", "cpu").contains("freezing"));
  EXPECT_TRUE(KnobsTakenBy("torch-inductor", "cpu").contains("freezing"));
  EXPECT_EQ(KnobsTakenBy("somebody-else", "cpu").size(), 1u) << "threads are everyone's";
  const std::string why = WhyNotTaken("freezing", "torch-aoti", "cpu");
  EXPECT_NE(why.find("weights as inputs"), std::string::npos) << why;
  EXPECT_NE(why.find("of torch-inductor"), std::string::npos) << why;
  EXPECT_EQ(WhyNotTaken("nonsense", "jax", "cpu"), "unknown knob 'nonsense'");
}

TEST(Knobs, AnEnvironmentIsANameAndNoPath) {
  for (const char* value : {"torch-2.15.0", "a", "jax-0.9.0.1", "torch-xla", "x_1"})
    EXPECT_TRUE(CheckKnobValue(kEnvKnob, value)) << value;
  for (const char* value : {"", ".", "..", "../x", "a/b", "a b", ".a", "a.", "-a", "a}", "{python}", "a%"})
    EXPECT_FALSE(CheckKnobValue(kEnvKnob, value)) << value;
  EXPECT_FALSE(CheckKnobValue(kEnvKnob, std::string(65, 'a')));
  EXPECT_TRUE(ChoosesWhatRuns(kEnvKnob)) << "no case may set it";
}

TEST(Knobs, SomeChooseWhatRuns) {
  EXPECT_TRUE(ChoosesWhatRuns("backend_name"));
  EXPECT_TRUE(ChoosesWhatRuns("fault"));
  EXPECT_FALSE(ChoosesWhatRuns("threads"));
  EXPECT_FALSE(ChoosesWhatRuns("of_another_adapter"));
}

}  // namespace
}  // namespace ulpscope
