// Reading and judging.
#include "harness/cli/judged_run.h"

#include "harness/cli/recorded_cases.h"
#include "harness/cli/run_judge.h"

namespace ulpscope {

Result<std::unique_ptr<JudgedRun>> JudgeRecorded(const std::string& folder,
                                                 const std::vector<std::string>& cases, Source source) {
  auto run = ReadRun(folder, TensorLoading::kLater);
  if (!run) return Fail(run.error());
  auto workspace = OpenWorkspace({});
  if (!workspace) return Fail(workspace.error());
  if (auto loaded = LoadCasesOf(*run, cases, &*workspace); !loaded) return Fail(loaded.error());
  auto classified = source == Source::kRecorded ? OpenClassified(*run) : ClassifiedRun();
  if (!classified) return Fail(classified.error());
  using Found = JudgeRunOptions::Found;
  auto report = JudgeRun(*run, *workspace, &*classified,
                         {.exclusions = JudgeRunOptions::Exclusions::kShown,
                          .found = source == Source::kAnew ? Found::kKept : Found::kDropped});
  if (!report) return Fail(report.error());
  if (source == Source::kAnew) {
    if (auto written = WriteClassified(*run, *classified); !written) return Fail(written.error());
  }
  return std::make_unique<JudgedRun>(
      JudgedRun{.run = std::move(*run), .workspace = std::move(*workspace), .report = std::move(*report)});
}

}  // namespace ulpscope
