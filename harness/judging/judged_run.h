// A recorded run, judged: read by `judge`, `report`, `diff` and `merge` from a run folder.
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

/// The source of the classifications: `judge` queries the oracle again, and records the answers.
enum class Source { kRecorded, kAnew };

/// Reads and judges the run in `folder`. `cases`: files that replace the recorded cases. Cases that would take longer
/// than `limit_minutes` (0: no limit) are left out and listed in the report.
Result<std::unique_ptr<JudgedRun>> JudgeRecorded(const std::string& folder,
                                                 const std::vector<std::string>& cases, Source source,
                                                 double limit_minutes = 0);

}  // namespace ulpscope
