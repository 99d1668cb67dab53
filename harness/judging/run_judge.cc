// Judging recorded runs.
#include "harness/judging/run_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/base/check.h"
#include "harness/base/deadline.h"
#include "harness/base/machine_limits.h"
#include "harness/base/text.h"
#include "harness/casefile/prove.h"
#include "harness/hybrid/hybrid_runs.h"
#include "harness/judge/judge.h"
#include "harness/judge/knob_effect.h"
#include "harness/judging/case_of_run.h"
#include "harness/record/observation_json.h"
#include "harness/workspace/time_limit.h"
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

/// In the order of the run. Auxiliary inputs and instrumented programs are judged with the case that they belong to.
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
  const auto work_on = [&] {
    for (size_t index = next++; index < count; index = next++) work(index);
  };
  for (size_t i = 0; i < workers; ++i) {
    if (auto thread = TryThread(work_on)) threads.push_back(std::move(*thread));
  }
  if (threads.empty()) work_on();
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

void NoteLines(const std::vector<Step>& steps, std::map<std::string, int>* lines) {
  for (const Step& step : steps) {
    if (!step.as.empty() && step.pos.line > 0) lines->try_emplace(step.as, step.pos.line);
    NoteLines(step.steps, lines);
  }
}

/// Files in the current folder get relative names, which is where readers of annotations look for them.
std::map<std::string, CasePlace> PlacesOf(const std::vector<const Case*>& cases) {
  std::map<std::string, CasePlace> places;
  std::error_code error;
  const auto here = std::filesystem::current_path(error);
  for (const Case* each : cases) {
    CasePlace place{.at = each->written.line > 0 ? each->written : each->pos};
    place.steps = SourceSteps(each->program);
    if (place.at.line == 0 && place.steps.empty()) continue;
    const auto from_here = std::filesystem::weakly_canonical(place.at.file, error).lexically_relative(here);
    if (!error && !from_here.empty() && *from_here.begin() != "..") place.at.file = from_here.string();
    NoteLines(each->program, &place.lines);
    places.emplace(each->id, std::move(place));
  }
  return places;
}

/// Nothing if all of `run` was run, judged and booked. `left_out`: findings so far.
std::optional<TimeLimit> WhatItLeftOut(double minutes, const RecordedRun& run, const RunReport& report,
                                       std::vector<std::string> left_out) {
  const ResultIndex recorded(run);
  size_t not_run = 0, not_judged = 0, not_booked = 0;
  for (const CaseResult& result : report.results) {
    if (result.status != Status::kNotRun) continue;
    ++(recorded.Find(result.id, result.backend) == nullptr ? not_run : not_judged);
  }
  for (const Ledger& ledger : report.ledgers) not_booked += ledger.left_out.starts_with(LimitText(minutes));
  TimeLimit limit{.minutes = minutes, .left_out = {}};
  const size_t all = report.results.size();
  size_t companions = 0;  // auxiliary cases: those that observe steps, or prove a contract
  for (const std::string& id : run.header.cases) {
    if (run.complete || BaseOf(id).empty()) continue;
    for (const std::string& backend : run.header.backends)
      companions += recorded.Find(id, backend) == nullptr;
  }
  if (not_run > 0) limit.left_out.push_back(fmt::format("{} of {} not run", not_run, Counted(all, "result")));
  if (not_judged > 0)
    limit.left_out.push_back(fmt::format("{} of {} run and not judged", not_judged, Counted(all, "result")));
  if (companions > 0)
    limit.left_out.push_back(Counted(companions, "further run") +
                             " of them, with every step observed or on other inputs, not made");
  if (not_booked > 0)
    limit.left_out.push_back(fmt::format("the steps of {} not booked", Counted(not_booked, "difference")));
  limit.left_out.insert(limit.left_out.end(), left_out.begin(), left_out.end());
  return limit.left_out.empty() ? std::nullopt : std::optional(std::move(limit));
}

}  // namespace

Result<RunReport> JudgeRun(const RecordedRun& run, const Workspace& workspace, ClassifiedRun* classified,
                           const JudgeRunOptions& options) {
  if (classified->engine.empty()) classified->engine = Name(options.engine);
  Classifications classifications(classified, options.found, run.header, options.writer);
  const auto hybrids = ULPSCOPE_TRY(ReadHybrids(run));
  const RunToJudge to_judge(run, workspace, &classifications, options.engine, hybrids ? &*hybrids : nullptr,
                            options.limit_minutes > 0 ? LimitText(options.limit_minutes) : "");
  const auto cases = ULPSCOPE_TRY(CasesOf(run, workspace));
  // Workers fill one slot each, so the order of the report does not depend on timing.
  std::vector<std::optional<Result<JudgedCase>>> judged(cases.size());
  ForEachInParallel(cases.size(), [&](size_t i) {
    const Case& test_case = *cases[i];
    if (!BeforeDeadline([&] { judged[i] = JudgeCaseOfRun(to_judge, test_case); }))
      judged[i] = CaseNotJudged(to_judge, test_case);
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
    append((*one)->account, &all.account);
    append((*one)->ledgers, &all.ledgers);
    append((*one)->budgets, &all.budgets);
    append((*one)->knobs, &all.knobs);
    append((*one)->left_out, &all.left_out);
  }
  RunReport report = BuildReport(FactsOf(run), std::move(all.results), std::move(all.divergences));
  report.account = std::move(all.account);
  report.ledgers = std::move(all.ledgers);
  report.budgets = std::move(all.budgets);
  report.places = PlacesOf(cases);
  if (options.limit_minutes > 0)
    report.limit = WhatItLeftOut(options.limit_minutes, run, report, std::move(all.left_out));
  report.knobs = SumUpKnobs(all.knobs, run.header.backends);
  const OracleCounts& counted = classified->counts;
  ULPSCOPE_CHECK(counted.fast == 0 || counted.compared > 0,
                 "nothing of what the fast oracle computed was compared with Boost");
  report.oracle_engine = classified->engine;
  report.oracle_counts = counted;
  return report;
}

}  // namespace ulpscope
