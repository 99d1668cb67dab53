// Reading and judging.
#include "harness/judging/judged_run.h"

#include <utility>

#include "harness/judging/run_judge.h"
#include "harness/workspace/recorded_cases.h"
#include "harness/workspace/time_limit.h"

namespace ulpscope {

Result<std::unique_ptr<JudgedRun>> JudgeRecorded(const std::string& folder,
                                                 const std::vector<std::string>& cases, Source source,
                                                 double limit_minutes) {
  const TimeLimitWatch limit(limit_minutes);
  std::shared_ptr<RunLock> lock;
  if (source == Source::kAnew) lock = ULPSCOPE_TRY(RunLock::Take(RunFolderOf(folder)));
  auto run = ULPSCOPE_TRY(ReadRun(folder, TensorLoading::kLater));
  auto workspace = ULPSCOPE_TRY(OpenWorkspace({}));
  ULPSCOPE_TRY(LoadCasesOf(run, cases, &workspace));
  auto classified = ULPSCOPE_TRY(source == Source::kRecorded ? OpenClassified(run) : ClassifiedRun());
  using Found = JudgeRunOptions::Found;
  limit.BeginDeadline();
  auto report = ULPSCOPE_TRY(JudgeRun(run, workspace, &classified,
                                      {.exclusions = JudgeRunOptions::Exclusions::kShown,
                                       .found = source == Source::kAnew ? Found::kKept : Found::kDropped,
                                       .limit_minutes = limit_minutes}));
  if (source == Source::kAnew) {
    ULPSCOPE_TRY(WriteClassified(run, classified));
  }
  return std::make_unique<JudgedRun>(JudgedRun{.run = std::move(run),
                                               .workspace = std::move(workspace),
                                               .report = std::move(report),
                                               .lock = std::move(lock)});
}

}  // namespace ulpscope
