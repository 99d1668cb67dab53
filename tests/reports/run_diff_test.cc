// What changed between two runs, and which of it is for the worse.
#include "reports/run_diff.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/reports/sample.h"

namespace ulpscope {
namespace {

using testing::Model;
using testing::SampleReport;

/// "+ divergence ...", "- status ...", "= casts ...": worse, better, otherwise.
std::vector<std::string> Told(const RunDiff& diff) {
  static constexpr const char* kWays[] = {"+", "-", "="};
  static constexpr const char* kKinds[] = {"status", "class", "divergence", "casts"};
  std::vector<std::string> lines;
  for (const RunChange& change : diff.changes)
    lines.push_back(std::string(kWays[static_cast<size_t>(change.way)]) + " " +
                    kKinds[static_cast<size_t>(change.kind)] + " " + change.backend +
                    (change.backend.empty() ? "" : " ") + change.what);
  return lines;
}

CaseResult& ResultOn(RunReport& report, const std::string& backend) {
  return *std::find_if(report.results.begin(), report.results.end(),
                       [&](const CaseResult& result) { return result.backend == backend; });
}

struct DiffRow {
  const char* name;
  std::function<void(RunReport&)> change;  ///< of the second run
  std::vector<std::string> told;           ///< and, with + and - exchanged, backwards
};

TEST(RunDiff, TellsEachChangeAndItsWay) {
  const DiffRow rows[] = {
      {"nothing", [](RunReport&) {}, {}},
      {"time and order",
       [](RunReport& r) {
         r.results[1].durations_ms["run"] = 2;
         r.divergences.pop_back();
       },
       {}},
      {"fails",
       [](RunReport& r) {
         r.results[0].status = Status::kFail;
         r.results[0].reason = "why";
       },
       {"+ status torch-eager PASS -> FAIL: why"}},
      {"crashes instead of failing",
       [](RunReport& r) {
         r.results[1].status = Status::kCrash;
         r.results[1].reason.clear();
       },
       {"+ status torch-aot-eager FAIL -> CRASH"}},
      {"is skipped",
       [](RunReport& r) { ResultOn(r, "openblas").status = Status::kSkip; },
       {"+ status openblas PASS -> SKIP"}},
      {"is refused",
       [](RunReport& r) {
         ResultOn(r, "openblas").outcome = {.kind = OutcomeKind::kRaised, .error_class = "E", .text = {}};
       },
       {"+ class openblas completed -> raised E"}},
      {"keeps less",
       [](RunReport& r) {
         ResultOn(r, "openblas").values["result"] = testing::Value({Model("float32", "bfloat16")});
       },
       {"+ class openblas result: f32 -> f32>bf16>f32"}},
      {"keeps less by half",
       [](RunReport& r) {
         ResultOn(r, "openblas").values["result"] = testing::Value({Model("float16", "none")});
       },
       {"+ class openblas result: f32 -> f16>f32"}},
      {"is not explained",
       [](RunReport& r) { ResultOn(r, "openblas").values["result"] = testing::Value({}); },
       {"+ class openblas result: f32 -> unmodelled"}},
      {"as coarse, likely",
       [](RunReport& r) {
         ResultOn(r, "openblas").values["result"].classification.rests_on_likelihood = true;
       },
       {"= class openblas result: f32 -> f32~"}},
      {"parts",
       [](RunReport& r) {
         r.divergences.push_back(r.divergences[1]);
         r.divergences.back().value = "other";
       },
       {"+ divergence new precision of other and result: " + SampleReport().divergences[1].sentence}},
      {"a new member on one side",
       [](RunReport& r) {
         r.divergences[1].backends[1] = {"jax", "openblas"};
       },
       {"+ divergence new precision of product and result: " + SampleReport().divergences[1].sentence,
        "- divergence gone precision of product and result: " + SampleReport().divergences[1].sentence}},
      {"sides exchanged",
       [](RunReport& r) { std::swap(r.divergences[1].backends[0], r.divergences[1].backends[1]); },
       {}},
      {"converts more",
       [](RunReport& r) {
         r.results[1].casts.push_back(r.results[1].casts[0]);
         r.results[1].casts.push_back(r.results[1].casts[0]);
       },
       {"= casts torch-aot-eager new 2 times aot_forward: bfloat16 to float32 of [32,7,1,1] under "
        "aten::copy_"}},
  };
  for (const DiffRow& row : rows) {
    RunReport after = SampleReport();
    row.change(after);
    EXPECT_EQ(Told(CompareRuns(SampleReport(), after, {})), row.told) << row.name;
    const bool worse =
        std::any_of(row.told.begin(), row.told.end(), [](const auto& line) { return line[0] == '+'; });
    EXPECT_EQ(HasWorse(CompareRuns(SampleReport(), after, {})), worse) << row.name;
    const RunDiff back = CompareRuns(after, SampleReport(), {});
    const bool better =
        std::any_of(row.told.begin(), row.told.end(), [](const auto& line) { return line[0] == '-'; });
    EXPECT_EQ(HasWorse(back), better) << row.name << ", backwards";
    EXPECT_EQ(back.changes.size(), row.told.size()) << row.name << ", backwards";
  }
}

TEST(RunDiff, ABackendMoreChangesNothingOfTheOthers) {
  RunReport after = SampleReport();
  CaseResult more = after.results[2];
  more.backend = "onednn";
  after.results.push_back(more);
  after.divergences[1].backends[1].push_back("onednn");
  Divergence own = after.divergences[1];
  own.backends = {{"onednn"}, {"openblas"}};
  after.divergences.push_back(own);
  const RunDiff diff = CompareRuns(SampleReport(), after, {});
  EXPECT_EQ(Told(diff), std::vector<std::string>());
  EXPECT_EQ(diff.only_after, std::vector<std::string>{"onednn"});
  EXPECT_EQ(diff.compared, 5u);
}

TEST(RunDiff, ADivergenceThatPartsTheSameBackendsOtherwiseChangedOnce) {
  RunReport before = SampleReport(), after = SampleReport();
  before.divergences.resize(1);
  after.divergences.resize(1);
  Divergence& was = before.divergences[0];
  Divergence& now = after.divergences[0];
  was.backends = {{"torch-eager"}, {"torch-aot-eager", "openblas"}};
  now.backends = {{"torch-eager", "torch-aot-eager"}, {"openblas"}};
  const RunDiff diff = CompareRuns(before, after, {});
  ASSERT_EQ(diff.changes.size(), 1u) << Told(diff)[0];
  EXPECT_EQ(diff.changes[0].way, RunChange::Way::kOther);
  EXPECT_TRUE(diff.changes[0].what.starts_with("changed ")) << diff.changes[0].what;
  EXPECT_FALSE(HasWorse(diff));
  // Of other backends, or at another value, it is another one.
  now.backends = {{"torch-eager"}, {"openblas"}};
  EXPECT_EQ(CompareRuns(before, after, {}).changes.size(), 2u);
  EXPECT_TRUE(HasWorse(CompareRuns(before, after, {})));
  now.backends = {{"torch-eager", "torch-aot-eager"}, {"openblas"}};
  now.value += "_other";
  EXPECT_EQ(CompareRuns(before, after, {}).changes.size(), 2u);
}

TEST(RunDiff, ACaseThatComputesSomethingElseIsNotCompared) {
  RunReport after = SampleReport();
  after.results[0].status = Status::kFail;
  after.divergences.clear();
  const RunDiff diff = CompareRuns(SampleReport(), after, {"seeds/matmul_out/as_posted"});
  EXPECT_EQ(Told(diff), std::vector<std::string>());
  EXPECT_EQ(diff.compared, 0u);
}

TEST(RunDiff, TextTellsVersionsTimeAndNothingRaw) {
  RunReport after = SampleReport();
  after.versions["torch-eager"]["torch"] = "2.14.0";
  after.seed = 3;
  after.results[1].durations_ms = {{"run", 1500.0}};
  after.results[0].status = Status::kFail;
  after.results[0].reason = "\x1b[2J\xe2\x80\xae";
  const std::string text = WriteRunDiff(CompareRuns(SampleReport(), after, {}), DiffLength::kBrief, 120);
  for (const char* line :
       {"torch 2.13.0+cpu -> 2.14.0 (torch-eager)\n", "seed 0 -> 3", "for the worse (1)\n",
        "  status      seeds/matmul_out/as_posted  torch-eager  PASS -> FAIL", "slower (1)\n",
        "2 ms -> 1500 ms", "5 results compared; they took 0.0 s, then 1.5 s\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  after.results[1].durations_ms.clear();
  std::vector<CaseResult> many;
  for (int i = 0; i < 30; ++i) {
    many.push_back(after.results[0]);
    many.back().id += std::to_string(i);
  }
  RunReport before = after;
  before.results = after.results = many;
  for (auto& result : before.results) result.status = Status::kPass;
  const RunDiff long_diff = CompareRuns(before, after, {});
  EXPECT_NE(WriteRunDiff(long_diff, DiffLength::kBrief, 120).find("and 10 more (-v lists them)"),
            std::string::npos);
  EXPECT_EQ(WriteRunDiff(long_diff, DiffLength::kWhole, 120).find(" more "), std::string::npos);
}

}  // namespace
}  // namespace ulpscope
