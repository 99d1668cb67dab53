// Every fault of the faulty adapters, in C++ and in Python, becomes what tests/faults.yaml states, and
// disturbs nothing else.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <functional>
#include <set>
#include <utility>

#include "harness/base/build_info.h"
#include "harness/judge/judge.h"
#include "harness/run/hello.h"
#include "tests/run/run_fixture.h"

namespace ulpscope {
namespace {

/// The SDK that commits it: each language has an adapter of the same faults.
enum class Language { kCpp, kPython };

struct FaultRow {
  std::string fault, outcome, error_class, status, reason, scope;
  Language language = Language::kCpp;
};

std::string NameOf(const FaultRow& row) {
  return row.fault + (row.language == Language::kCpp ? "" : "_python");
}
void PrintTo(const FaultRow& row, std::ostream* stream) { *stream << NameOf(row); }

/// The rows as they hold for one language: under `python` stands what differs there.
std::vector<FaultRow> Rows(Language language) {
  std::vector<FaultRow> rows;
  const auto text = [](const YAML::Node& node, const char* key) {
    return node[key] ? node[key].as<std::string>() : "";
  };
  for (const auto& node : YAML::LoadFile(SourceDir() + "/tests/faults.yaml")) {
    const auto in_language = [&](const char* key) {
      const auto other = node["python"];
      return language == Language::kPython && other && other[key] ? text(other, key) : text(node, key);
    };
    rows.push_back({.fault = text(node, "fault"),
                    .outcome = in_language("outcome"),
                    .error_class = in_language("class"),
                    .status = in_language("status"),
                    .reason = in_language("reason"),
                    .scope = text(node, "scope"),
                    .language = language});
  }
  return rows;
}

std::vector<FaultRow> RowsOfBothLanguages() {
  auto rows = Rows(Language::kCpp);
  for (auto& row : Rows(Language::kPython)) rows.push_back(std::move(row));
  return rows;
}

/// The registry with `faulty` answered by the adapter on the Python SDK, which needs no package: any interpreter does.
Registry PythonRegistry() {
  Registry registry = TestRegistry();
  RegistryRow row = *registry.Find("faulty");
  const fs::path own = registry.places().python;
  row.adapter = {fs::exists(own) ? own.string() : "/usr/bin/python3", "{root}/backends/faulty/adapter.py"};
  row.requires_file = row.adapter.back();
  registry.AddRow(row);
  return registry;
}

class FaultTest : public RunTest, public ::testing::WithParamInterface<FaultRow> {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    options_.memory_budget_bytes = int64_t{256} << 20;
    options_.jobs = 2;
    if (GetParam().language == Language::kPython) registry_ = PythonRegistry();
  }
};

/// All that a report has on an observation.
std::string Told(const Observation& observation, const CaseResult& judged) {
  return observation.outcome.text + "\n" + observation.tainted + "\n" + judged.reason;
}

TEST_P(FaultTest, BecomesWhatIsListedAndDisturbsNothingElse) {
  const FaultRow& row = GetParam();
  const std::string struck = "faulty:case=struck,fault=" + row.fault, clean = "faulty";
  // Short only where it is waited for: a loaded machine may take its time over everything else.
  options_.timeout_s = row.outcome == "timed_out" && row.scope == "case" ? 2 : 30;
  options_.startup_timeout_s = row.outcome == "timed_out" && row.scope == "start" ? 2 : 30;
  const auto cases = ThreeCases();
  const Recorder recorder = Run(cases, {struck, clean});
  ASSERT_EQ(recorder.results.size(), 6u);
  int looked_at = 0;
  for (const auto& test_case : cases) {
    const Observation& with = recorder.results.at({test_case.id, struck});
    const Observation& without = recorder.results.at({test_case.id, clean});
    ASSERT_EQ(without.outcome.kind, OutcomeKind::kCompleted) << without.outcome.text << without.worker_log;
    EXPECT_EQ(without.tainted, "");
    EXPECT_EQ(without.values.size(), 3u);
    ++looked_at;
    if (test_case.id != "t/struck" && row.scope == "case") {
      EXPECT_EQ(Stable(with), Stable(without)) << test_case.id << " was disturbed";
      continue;
    }
    EXPECT_EQ(Name(with.outcome.kind), row.outcome) << with.outcome.text;
    EXPECT_EQ(with.outcome.error_class, row.error_class);
    const CaseResult judged = JudgeCase(test_case, struck, with, {}, {});
    EXPECT_EQ(Name(judged.status), row.status) << judged.reason;
    EXPECT_NE(Told(with, judged).find(row.reason), std::string::npos) << Told(with, judged);
  }
  EXPECT_EQ(looked_at, 3);
}

INSTANTIATE_TEST_SUITE_P(All, FaultTest, ::testing::ValuesIn(RowsOfBothLanguages()),
                         [](const auto& row) { return NameOf(row.param); });

class FaultListTest : public RunTest {};

TEST_F(FaultListTest, EveryFaultOfTheAdapterIsListed) {
  std::set<std::string> listed;
  for (const auto& row : Rows(Language::kCpp))
    EXPECT_TRUE(listed.insert(row.fault).second) << row.fault << " is listed twice";
  for (const auto& registry : {TestRegistry(), PythonRegistry()}) {
    const auto info = DescribeBackend({.name = "faulty", .knobs = {}}, registry);
    ASSERT_TRUE(info) << info.error().Text();
    const auto& offered = info->knobs.at("fault");
    EXPECT_EQ(listed, std::set<std::string>(offered.begin(), offered.end()));
  }
  EXPECT_GE(listed.size(), 60u);
}

// Effects that the table has no column for.
TEST_F(FaultListTest, FaultsLeaveTheirTraces) {
  const auto cases = ThreeCases();
  const auto with = [&](const std::string& fault) {
    options_.out = root_ / fault;
    const std::string backend = "faulty:case=struck,fault=" + fault;
    return Run(cases, {backend}).results.at({"t/struck", backend});
  };
  const Observation order = with("order");
  ASSERT_EQ(order.notes.size(), 1u);
  EXPECT_NE(order.notes[0].find("order dependence"), std::string::npos);
  EXPECT_EQ(with("segv").notes, std::vector<std::string>{});
  const Observation waver = with("nondeterministic");
  EXPECT_EQ(waver.nondeterministic.size(), 3u);
  EXPECT_GE(waver.nondeterministic.at("product"), 1.0);
  EXPECT_EQ(with("unwritten").unwritten, (std::vector<std::string>{"narrow", "product", "result"}));
  EXPECT_EQ(with("stdout_flood").worker_log, "");
  const Observation ftz = with("ftz");
  ASSERT_TRUE(ftz.fp_after);
  EXPECT_EQ(ftz.fp_after->mxcsr & 0x8040, 0x8040u);
  EXPECT_FALSE(ftz.fp_after->subnormals_kept);
}

/// Looks at the moment a result arrives, long before the run ends.
class ScanningRecorder : public Recorder {
 public:
  explicit ScanningRecorder(std::function<std::vector<std::string>()> scan) : scan_(std::move(scan)) {}
  void OnResult(const Case& test_case, const BackendSpec& backend, const Observation& observation) override {
    Recorder::OnResult(test_case, backend, observation);
    left = scan_();
  }
  std::vector<std::string> left{"never looked"};

 private:
  std::function<std::vector<std::string>()> scan_;
};

TEST_F(FaultListTest, WhatADeadWorkerStartedDiesWithItAndNotWithTheRun) {
  ScanningRecorder recorder([this] { return MarkedProcesses(); });
  const BackendSpec backend{.name = "faulty", .device = "cpu", .knobs = {{"fault", "orphan_segv"}}};
  ASSERT_TRUE(RunCases({SmallCase("t/struck")}, {backend}, TestRegistry(), SmallInputs, options_, recorder));
  EXPECT_EQ(recorder.left, std::vector<std::string>{});
}

TEST_F(FaultListTest, WhatComesAfterAnAnswerIsNotTheNextCasesFault) {
  options_.repeat = 1;
  int runs = 0;
  for (const std::string fault : {"die_after", "late_line"}) {
    options_.out = root_ / fault;
    const std::string backend = "faulty:case=struck,fault=" + fault;
    // A pause before the next case, in which the worker does what it does.
    bool waited = false;
    inputs_ = [&](const Case& test_case) {
      if (test_case.id == "t/omega" && !std::exchange(waited, true)) {
        ::usleep(300000);
        // Sanitizers make an end take its time.
        for (int i = 0; fault == "die_after" && i < 500 && !MarkedProcesses().empty(); ++i) ::usleep(10000);
      }
      return SmallInputs(test_case);
    };
    const auto results = Run(ThreeCases(), {backend, "faulty"}).results;
    for (const auto& test_case : ThreeCases()) {
      EXPECT_EQ(Stable(results.at({test_case.id, backend})), Stable(results.at({test_case.id, "faulty"})))
          << fault;
      ++runs;
    }
  }
  EXPECT_EQ(runs, 6);
}

TEST_F(FaultListTest, FlushingThatWasAskedForIsNoTaint) {
  const std::string backend = "faulty:case=struck,fault=ftz,flush_denormal=on";
  EXPECT_EQ(Run(ThreeCases(), {backend}).results.at({"t/struck", backend}).tainted, "");
}

}  // namespace
}  // namespace ulpscope
