// Runs as a whole: parallel ones, resumed ones, interrupted ones, killed ones.
#include "harness/run/scheduler.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "harness/base/build_info.h"
#include "harness/record/journal.h"
#include "harness/run/hello.h"
#include "tests/run/run_fixture.h"
#include "tests/support/bin_dir.h"

namespace ulpscope {
namespace {

class SchedulerTest : public RunTest {
 protected:
  static std::vector<Case> Many(int count) {
    std::vector<Case> cases;
    for (int i = 0; i < count; ++i) cases.push_back(SmallCase("many/case_" + std::to_string(i)));
    return cases;
  }

  static std::map<std::pair<std::string, std::string>, std::string> StableOf(const Recorder& recorder) {
    std::map<std::pair<std::string, std::string>, std::string> texts;
    for (const auto& [key, observation] : recorder.results) texts[key] = Stable(observation);
    return texts;
  }
};

TEST_F(SchedulerTest, JobsDoNotChangeResults) {
  const auto cases = Many(30);
  const std::vector<std::string> backends{"faulty", "faulty:fault=segv,case=case_7"};
  const auto one = StableOf(Run(cases, backends));
  options_.out = root_ / "parallel";
  options_.jobs = 4;
  const Recorder parallel = Run(cases, backends);
  EXPECT_EQ(one.size(), 60u);
  EXPECT_EQ(StableOf(parallel), one);
  EXPECT_EQ(parallel.begun, 60);
  EXPECT_EQ(parallel.ended, 1);
  EXPECT_EQ(summary_.ran, 60);
  EXPECT_EQ(summary_.versions.at("faulty").at("faulty"), std::string(Version()));
}

TEST_F(SchedulerTest, RecycledWorkersGiveTheSameResults) {
  const auto warm = StableOf(Run(Many(12), {"faulty"}));
  options_.out = root_ / "recycled";
  options_.recycle_after = 1;
  EXPECT_EQ(StableOf(Run(Many(12), {"faulty"})), warm);
}

TEST_F(SchedulerTest, TheJournalHoldsWhatTheObserverSaw) {
  const Recorder recorder = Run(ThreeCases(), {"faulty", "faulty:case=struck,fault=abort"});
  const auto run = ReadRun(options_.out);
  ASSERT_TRUE(run) << run.error().Text();
  EXPECT_TRUE(run->complete);
  ASSERT_EQ(run->results.size(), 6u);
  for (const auto& result : run->results) {
    EXPECT_EQ(Stable(result.observation), Stable(recorder.results.at({result.case_id, result.backend})));
  }
  EXPECT_EQ(run->header.backends, (std::vector<std::string>{"faulty", "faulty:case=struck,fault=abort"}));
}

TEST_F(SchedulerTest, ARunFolderIsNotOverwritten) {
  Run(ThreeCases(), {"faulty"});
  Recorder recorder;
  const auto again = RunCases(ThreeCases(), {{.name = "faulty", .knobs = {}}}, TestRegistry(), SmallInputs,
                              options_, recorder);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().Text().find("--resume"), std::string::npos);
}

TEST_F(SchedulerTest, ResumeRunsOnlyWhatIsMissingOrChanged) {
  auto cases = ThreeCases();
  const auto first = StableOf(Run({cases[0], cases[1]}, {"faulty"}));
  options_.resume = true;
  cases[1].program[1].op = "sub";  // the case has changed since
  const Recorder resumed = Run(cases, {"faulty"});
  EXPECT_EQ(summary_.resumed, 1);
  EXPECT_EQ(summary_.ran, 2);
  EXPECT_EQ(StableOf(resumed).at({"t/alpha", "faulty"}), first.at({"t/alpha", "faulty"}));
  EXPECT_NE(StableOf(resumed).at({"t/struck", "faulty"}), first.at({"t/struck", "faulty"}));
  EXPECT_EQ(resumed.results.size(), 3u);
  options_.seed = 1;
  Recorder recorder;
  const auto other =
      RunCases(cases, {{.name = "faulty", .knobs = {}}}, TestRegistry(), SmallInputs, options_, recorder);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().Text().find("another seed"), std::string::npos);
}

TEST_F(SchedulerTest, ASignalEndsTheRunAndTheJournalIsWhole) {
  // A background process inherits from its shell that SIGINT is ignored.
  ::signal(SIGINT, SIG_DFL);
  options_.jobs = 2;
  // Strikes once both workers hang: the journal has begun the struck case twice and ended the first one
  // twice.
  std::thread killer([this] {
    for (auto run = ReadRun(options_.out); !run || run->results.size() < 2 || run->unfinished.size() < 2;
         run = ReadRun(options_.out))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ::kill(::getpid(), SIGINT);
  });
  Run(ThreeCases(), {"faulty:fault=hang,case=struck", "faulty:fault=sigstop,case=struck"});
  killer.join();
  EXPECT_TRUE(summary_.interrupted);
  const auto run = ReadRun(options_.out);
  ASSERT_TRUE(run);
  EXPECT_FALSE(run->complete);
  EXPECT_EQ(run->results.size(), 2u) << "alpha on both; struck hangs";
  EXPECT_EQ(run->unfinished.size(), 2u);
}

uintmax_t SizeOf(const fs::path& file) {
  std::error_code error;
  const uintmax_t size = fs::file_size(file, error);
  return error ? 0 : size;
}

/// Runs in a process of its own that is killed once the journal has grown by `bytes` (or when it is done).
void RunAndKill(const std::function<void()>& run, const fs::path& journal, uintmax_t bytes) {
  const uintmax_t enough = SizeOf(journal) + bytes;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    run();
    ::_exit(0);
  }
  pid_t ended = 0;
  while (SizeOf(journal) < enough && (ended = ::waitpid(child, nullptr, WNOHANG)) == 0) ::usleep(200);
  if (ended != 0) return;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(SchedulerTest, KilledRunsResumeToTheSameResultsAndLeaveNothing) {
  const auto cases = Many(40);
  const std::vector<std::string> backends{"faulty", "faulty:fault=orphan,case=case_3"};
  const auto whole = StableOf(Run(cases, backends));
  options_.resume = true;
  options_.jobs = 2;
  int64_t kept = 0, made_up = 0;
  for (int round = 0; round < 10; ++round) {
    options_.out = root_ / ("killed" + std::to_string(round));
    for (int kill = 0; kill < 3; ++kill) {
      const auto bytes = static_cast<uintmax_t>((round * 3701 + kill * 6101) % 20000);
      RunAndKill([&] { Run(cases, backends); }, options_.out / "journal.jsonl", bytes);
    }
    // The janitors need a moment.
    for (int i = 0; i < 6000 && !MarkedProcesses().empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(MarkedProcesses(), std::vector<std::string>{});
    const Recorder resumed = Run(cases, backends);
    // After the next run: one that is killed before its janitor lives leaves its folder to that run.
    EXPECT_EQ(TemporaryFiles(), std::vector<std::string>{});
    EXPECT_EQ(StableOf(resumed), whole);
    kept += summary_.resumed;
    made_up += summary_.ran;
  }
  EXPECT_GT(kept, 0) << "nothing was ever stored: the test kills too early";
  EXPECT_GT(made_up, 0) << "nothing was ever missing: the test kills too late";
}

TEST_F(SchedulerTest, WhatCannotRunIsUnsupportedWithTheReason) {
  auto cases = ThreeCases();
  cases[1].requires_["device"] = "cuda";
  cases[2].knobs["mkldnn"] = "off";
  const Recorder recorder = Run(cases, {"faulty", "hipblas"});
  const auto text = [&](const char* id, const char* backend) {
    const Observation& observation = recorder.results.at({id, backend});
    EXPECT_EQ(observation.outcome.kind, id == std::string("t/alpha") && backend == std::string("faulty")
                                            ? OutcomeKind::kCompleted
                                            : OutcomeKind::kUnsupported);
    return observation.outcome.text;
  };
  EXPECT_EQ(text("t/alpha", "faulty"), "");
  EXPECT_EQ(text("t/struck", "faulty"), "requires device cuda");
  EXPECT_EQ(text("t/omega", "faulty"), "backend faulty has no knob mkldnn");
  EXPECT_TRUE(text("t/alpha", "hipblas").starts_with("no adapter: no hardware seen"));
}

TEST_F(SchedulerTest, KnobsOfTheBackendBeatTheCommandLineBeatTheCase) {
  auto cases = ThreeCases();
  cases[0].knobs = {{"fault", "segv"}, {"case", "alpha"}};
  EXPECT_EQ(Run(cases, {"faulty"}).results.at({"t/alpha", "faulty"}).outcome.kind, OutcomeKind::kCrashed);
  options_.out = root_ / "2";
  options_.knobs = {{"fault", "exit3"}};
  EXPECT_EQ(Run(cases, {"faulty"}).results.at({"t/alpha", "faulty"}).outcome.error_class, "exit 3");
  options_.out = root_ / "3";
  const auto results = Run(cases, {"faulty:fault=none"}).results;
  const Observation& observation = results.at({"t/alpha", "faulty:fault=none"});
  EXPECT_EQ(observation.outcome.kind, OutcomeKind::kCompleted);
  EXPECT_EQ(observation.knobs_asked,
            (std::map<std::string, std::string>{{"fault", "none"}, {"case", "alpha"}}));
}

TEST_F(SchedulerTest, AnAdapterOutOfTheTreeServesWhatItsHelloNames) {
  fs::create_symlink(fs::path(testing::BinDir()) / "ulpscope-faulty", root_ / "mine");
  Registry registry = TestRegistry();
  const auto served = AddAdapter(registry, root_ / "mine");
  ASSERT_TRUE(served) << served.error().Text();
  EXPECT_EQ(*served, std::vector<std::string>{"faulty"});
  EXPECT_EQ(registry.Command(*registry.Find("faulty")), std::vector<std::string>{(root_ / "mine").string()});
  EXPECT_FALSE(AddAdapter(registry, root_ / "absent"));
  EXPECT_FALSE(AddAdapter(registry, "/bin/true")) << "ends before it answers";
  EXPECT_FALSE(AddAdapter(registry, "/bin/cat")) << "answers nothing on the socket";
}

TEST_F(SchedulerTest, TheDefaultFolderHasALatestLink) {
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  options_.out.clear();
  Run(ThreeCases(), {"faulty"});
  EXPECT_TRUE(fs::exists("runs/latest/journal.jsonl"));
  EXPECT_EQ(fs::canonical("runs/latest"), fs::canonical(summary_.dir));
  fs::current_path(before);
}

TEST_F(SchedulerTest, AWarmCaseCostsTheHarnessUnderAMillisecond) {
  const int count = 200;
  options_.repeat = 1;
  const auto start = std::chrono::steady_clock::now();
  const Recorder recorder = Run(Many(count), {"faulty"});
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - start;
  double adapter = 0;
  for (const auto& [key, observation] : recorder.results) adapter += observation.durations_ms.at("run");
  RecordProperty("milliseconds_per_case", std::to_string((all.count() - adapter) / count));
  std::printf("harness: %.3f ms per case, start and end of the worker included\n",
              (all.count() - adapter) / count);
  EXPECT_EQ(recorder.results.size(), static_cast<size_t>(count));
}

}  // namespace
}  // namespace ulpscope
