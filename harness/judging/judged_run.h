// A recorded run, judged: what `judge`, `report`, `diff` and `merge` read from a run folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/model/run_report.h"
#include "harness/record/journal.h"
#include "harness/record/run_file.h"
#include "harness/workspace/workspace.h"

namespace ulpscope {

struct JudgedRun {
  RecordedRun run;
  Workspace workspace;  ///< the cases that it was judged by
  RunReport report;
  std::shared_ptr<RunLock> lock = {};  ///< kAnew: of its folder, into which the reports go
};

/// Where the classifications come from: `judge` asks the oracle anew, and records what it says.
enum class Source { kRecorded, kAnew };

/// Reads and judges the run in `folder`. `cases`: files in the place of the cases as they were run. What takes longer
/// than `limit_minutes` (0: nothing does) is left out, and listed in the report.
Result<std::unique_ptr<JudgedRun>> JudgeRecorded(const std::string& folder,
                                                 const std::vector<std::string>& cases, Source source,
                                                 double limit_minutes = 0);

}  // namespace ulpscope
