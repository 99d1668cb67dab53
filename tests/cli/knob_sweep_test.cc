// `ulpscope run --knob-sweep`: every value of every knob of a backend, against its default. The faulty
// adapter has knobs of known behaviour, one for each finding.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/planted_knobs.h"
#include "tests/support/program.h"

namespace ulpscope {
namespace {

using nlohmann::json;
using testing::RunProgram;

class KnobSweep : public ::testing::Test {
 protected:
  void SetUp() override { std::ofstream(folder_.path() / "probes.yaml") << testing::kPlantedKnobCases; }

  json Report() const {
    std::ifstream file(folder_.path() / "run/report.json");
    return json::parse(file);
  }
  /// The one row of a knob.
  json Row(const json& report, const std::string& knob) const {
    json found;
    int rows = 0;
    for (const auto& row : report["knobs"]) {
      if (row["knob"] != knob) continue;
      found = row;
      ++rows;
    }
    EXPECT_EQ(rows, 1) << knob;
    return found;
  }

  testing::TestFolder folder_;
};

TEST_F(KnobSweep, FindsWhatEachPlantedKnobIsPlantedFor) {
  const auto outcome = RunProgram(folder_.path(), "run --knob-sweep probes.yaml -b faulty -o run");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const json report = Report();
  EXPECT_EQ(report["knobs"].size(), 6u) << report["knobs"].dump(1);

  const json idle = Row(report, "planted_idle");
  EXPECT_EQ(idle["effect"], "no_effect");
  EXPECT_EQ(idle["read_back"], "as_asked");
  EXPECT_EQ(idle["compared"], 1);
  const json lie = Row(report, "planted_lie");
  EXPECT_EQ(lie["read_back"], "differs");
  EXPECT_EQ(lie["effective"], json::array({"off"}));
  const json act = Row(report, "planted_act");
  EXPECT_EQ(act["effect"], "acts");
  EXPECT_EQ(act["read_back"], "as_asked");
  EXPECT_EQ(act["case"], "probes/planted");
  EXPECT_TRUE(act["what"].get<std::string>().starts_with("bits of product: 1 of 16, at most 1 ulp"))
      << act["what"];
  const json refusal = Row(report, "planted_refusal");
  EXPECT_EQ(refusal["effect"], "refused");
  EXPECT_NE(refusal["what"].get<std::string>().find("refused, as planted"), std::string::npos);
  const json flush = Row(report, "flush_denormal");
  EXPECT_EQ(flush["read_back"], "not_read_back");
  EXPECT_EQ(Row(report, "threads")["effect"], "as_without") << "its only value";

  EXPECT_NE(outcome.out.find("accepted, no effect seen in 1 case"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("off (differs)"), std::string::npos) << outcome.out;
}

TEST_F(KnobSweep, ACaseIsRunForTheKnobsOfItsTagsOnly) {
  ASSERT_EQ(RunProgram(folder_.path(), "run --knob-sweep probes.yaml -b faulty -o run").code, 0);
  const json report = Report();
  int planted = 0, other = 0;
  for (const auto& result : report["results"]) {
    const std::string backend = result["backend"];
    if (result["id"] == "probes/planted") ++planted;
    if (result["id"] == "probes/other") {
      ++other;
      EXPECT_TRUE(backend == "faulty" || backend == "faulty:flush_denormal=on") << backend;
    }
  }
  EXPECT_EQ(planted, 6) << "the base, four planted knobs and threads";
  EXPECT_EQ(other, 2);
}

TEST_F(KnobSweep, AKnobThatNoCaseProbesIsAnError) {
  const auto outcome = RunProgram(folder_.path(), "run --knob-sweep probes.yaml -k planted -b faulty -o run");
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  EXPECT_NE(outcome.err.find("no case probes knob flush_denormal=on of faulty"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.err.find("planted_idle"), std::string::npos) << outcome.err;
}

TEST_F(KnobSweep, ARecordedSweepIsJudgedAgainToTheSameTable) {
  ASSERT_EQ(RunProgram(folder_.path(), "run --knob-sweep probes.yaml -b faulty -o run").code, 0);
  const json before = Report();
  const auto outcome = RunProgram(folder_.path(), "report run probes.yaml --json again.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::ifstream file(folder_.path() / "again.json");
  const json again = json::parse(file);
  EXPECT_EQ(again["knobs"], before["knobs"]);
  EXPECT_EQ(again["results"].size(), before["results"].size()) << "cells that were left out are not missing";
}

TEST_F(KnobSweep, OrdinaryRunsLeaveTheTableOut) {
  const auto outcome =
      RunProgram(folder_.path(),
                 "run probes.yaml -k planted -b faulty,faulty:planted_act=on,faulty:planted_idle=on -o run");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("read back"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(" PASS"), std::string::npos) << outcome.out;
}

TEST_F(KnobSweep, UnknownKnobsAreNamedWithTheNearest) {
  const auto outcome = RunProgram(folder_.path(), "run probes.yaml -b faulty:planted_akt=on");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.err.find("did you mean 'planted_act'?"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace ulpscope
