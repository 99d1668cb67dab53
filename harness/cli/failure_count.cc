// Judging cells one by one.
#include "harness/cli/failure_count.h"

#include "harness/casefile/prove.h"
#include "harness/cli/exit_codes.h"
#include "harness/judging/run_judge.h"
#include "harness/record/observation_json.h"

namespace ulpscope {
namespace {

std::string CaseOf(const std::string& id, const CaseIndex& cases) {
  const std::string base(BaseOf(id));
  return base.empty() || cases.Find(id) != nullptr ? id : base;
}

}  // namespace

FailureCount::FailureCount(const Workspace& workspace, const std::vector<Case>& cases, int64_t seed,
                           OracleEngine engine, int64_t most)
    : workspace_(workspace), cases_(workspace), seed_(seed), engine_(engine), most_(most) {
  for (const Case& test_case : cases) ids_[CaseOf(test_case.id, cases_)].push_back(test_case.id);
}

Result<void> FailureCount::Add(const Case& test_case, const std::string& backend,
                               const Observation& observation) {
  const std::string id = CaseOf(test_case.id, cases_);
  auto& results = waiting_[{id, backend}];
  results.push_back({.case_id = test_case.id,
                     .backend = backend,
                     .digest = CaseDigest(test_case),
                     .observation = observation});
  if (results.size() < ids_.at(id).size()) return {};
  RecordedRun run;
  run.header.seed = seed_;
  run.header.cases = {id};
  run.header.backends = {backend};
  run.header.started = started_;
  if (const auto versions = versions_.find(backend); versions != versions_.end())
    run.versions[backend] = versions->second;
  run.complete = true;
  run.results = std::move(results);
  waiting_.erase({id, backend});
  ClassifiedRun classified;
  const auto report = ULPSCOPE_TRY(JudgeRun(run, workspace_, &classified,
                                            {.engine = engine_,
                                             .exclusions = JudgeRunOptions::Exclusions::kShown,
                                             .found = JudgeRunOptions::Found::kDropped}));
  const int code = ExitCode(report, Interruption::kNone);
  if (code != 0 && code != kExitNothing) ++failures_;
  return {};
}

}  // namespace ulpscope
