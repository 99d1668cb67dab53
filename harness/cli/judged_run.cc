// Reading and judging.
#include "harness/cli/judged_run.h"

#include "harness/cli/recorded_cases.h"
#include "harness/cli/run_judge.h"

namespace ulpscope {

Result<std::unique_ptr<JudgedRun>> JudgeRecorded(const std::string& folder,
                                                 const std::vector<std::string>& cases, Source source) {
  auto run = ULPSCOPE_TRY(ReadRun(folder, TensorLoading::kLater));
  auto workspace = ULPSCOPE_TRY(OpenWorkspace({}));
  ULPSCOPE_TRY(LoadCasesOf(run, cases, &workspace));
  auto classified = ULPSCOPE_TRY(source == Source::kRecorded ? OpenClassified(run) : ClassifiedRun());
  using Found = JudgeRunOptions::Found;
  auto report = ULPSCOPE_TRY(JudgeRun(run, workspace, &classified,
                                      {.exclusions = JudgeRunOptions::Exclusions::kShown,
                                       .found = source == Source::kAnew ? Found::kKept : Found::kDropped}));
  if (source == Source::kAnew) {
    ULPSCOPE_TRY(WriteClassified(run, classified));
  }
  return std::make_unique<JudgedRun>(
      JudgedRun{.run = std::move(run), .workspace = std::move(workspace), .report = std::move(report)});
}

}  // namespace ulpscope
