// Judging recorded runs.
#include "harness/cli/run_judge.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/base/check.h"
#include "harness/base/deadline.h"
#include "harness/casefile/prove.h"
#include "harness/cli/judging/case_of_run.h"
#include "harness/judge/judge.h"
#include "harness/judge/knob_effect.h"
#include "harness/record/observation_json.h"
#include "reports/decisive.h"

namespace ulpscope {
namespace {

/// As it was run.
Result<const Case*> FindCase(const std::string& id, const RunHeader& header, const CaseIndex& index) {
  const Case* test_case = index.Find(id);
  if (test_case == nullptr) {
    return Fail(Problem("the run holds a case that is not in the suite", id, {},
                        "name its file on the command line"));
  }
  const auto digest = header.digests.find(id);
  if (digest != header.digests.end() && digest->second != CaseDigest(*test_case)) {
    return Fail(Error{
        .message = "case " + id + " has changed since the run: its record says nothing about it any more",
        .pos = test_case->pos,
        .hint = "run it again"});
  }
  return test_case;
}

/// In the order of the run. Companions and opened programs are judged with the case that they belong to.
Result<std::vector<const Case*>> CasesOf(const RecordedRun& run, const Workspace& workspace) {
  const CaseIndex index(workspace);
  std::vector<const Case*> cases;
  for (const auto& id : run.header.cases) {
    if (!BaseOf(id).empty() && index.Find(id) == nullptr) continue;
    const auto test_case = ULPSCOPE_TRY(FindCase(id, run.header, index));
    cases.push_back(test_case);
  }
  return cases;
}

void ForEachInParallel(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  const size_t workers = std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  for (size_t i = 0; i < workers; ++i) {
    threads.emplace_back([&] {
      for (size_t index = next++; index < count; index = next++) work(index);
    });
  }
  for (auto& thread : threads) thread.join();
}

RunFacts FactsOf(const RecordedRun& run) {
  RunFacts facts;
  facts.seed = run.header.seed;
  facts.complete = run.complete;
  facts.stopped_after = run.stopped_after;
  facts.backends = run.header.backends;
  facts.versions = run.versions;
  facts.not_installed = run.header.not_installed;
  facts.environment = run.header.environment;
  facts.id = run.header.id;
  facts.started = run.header.started;
  return facts;
}

}  // namespace

Result<RunReport> JudgeRun(const RecordedRun& run, const Workspace& workspace, ClassifiedRun* classified,
                           const JudgeRunOptions& options) {
  if (classified->engine.empty()) classified->engine = Name(options.engine);
  Classifications classifications(classified, options.found);
  const RunToJudge to_judge(run, workspace, &classifications, options.engine);
  const auto cases = ULPSCOPE_TRY(CasesOf(run, workspace));
  // Workers fill one slot each, so that the order of the report is no matter of timing.
  std::vector<std::optional<Result<JudgedCase>>> judged(cases.size());
  ForEachInParallel(cases.size(), [&](size_t i) {
    const Case& test_case = *cases[i];
    try {
      judged[i] = JudgeCaseOfRun(to_judge, test_case);
    } catch (const DeadlinePassed&) {
      judged[i] = CaseNotJudged(to_judge, test_case);
    }
    if (*judged[i] && options.exclusions == JudgeRunOptions::Exclusions::kShown)
      KeepShownExclusions((*judged[i])->divergences, &(*judged[i])->results);
  });
  JudgedCase all;
  const auto append = [](auto& from, auto* to) {
    std::move(from.begin(), from.end(), std::back_inserter(*to));
  };
  for (auto& one : judged) {
    if (!*one) return Fail(one->error());
    append((*one)->results, &all.results);
    append((*one)->divergences, &all.divergences);
    append((*one)->knobs, &all.knobs);
  }
  RunReport report = BuildReport(FactsOf(run), std::move(all.results), std::move(all.divergences));
  report.knobs = SumUpKnobs(all.knobs, run.header.backends);
  const OracleCounts& counted = classified->counts;
  ULPSCOPE_CHECK(counted.fast == 0 || counted.compared > 0,
                 "nothing of what the fast oracle computed was compared with Boost");
  report.oracle_engine = classified->engine;
  report.oracle_counts = counted;
  return report;
}

}  // namespace ulpscope
