// A recorded run, judged: what `judge`, `report`, `diff` and `merge` read from a run folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/cli/workspace.h"
#include "harness/model/run_report.h"
#include "harness/record/journal.h"

namespace ulpscope {

struct JudgedRun {
  RecordedRun run;
  Workspace workspace;  ///< the cases that it was judged by
  RunReport report;
};

/// Where the classifications come from: `judge` asks the oracle anew, and records what it says.
enum class Source { kRecorded, kAnew };

/// Reads and judges the run in `folder`. `cases`: files in the place of the cases as they were run.
Result<std::unique_ptr<JudgedRun>> JudgeRecorded(const std::string& folder,
                                                 const std::vector<std::string>& cases, Source source);

}  // namespace ulpscope
