// The cases of a run: into its folder when it is run, out of it when it is read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/record/journal.h"
#include "harness/workspace/workspace.h"

namespace ulpscope {

/// Copies the tensor files next to the file of `test_case` into `dir`, a repro bundle: its case.yaml names them.
Result<void> CopyTensorFiles(const Case& test_case, const std::filesystem::path& dir);

/// Writes the cases of `workspace` into the folder of the run. One that cannot be written as a file of its own is left
/// out: its own file is used for judging.
Result<void> RecordCases(const Workspace& workspace, const std::filesystem::path& dir,
                         const std::string& run_id);

/// Loads the cases of `run` into `workspace`: those of `arguments`, if any are named, else those in the folder, in the
/// version that was run; cases that neither has come from the suite.
Result<void> LoadCasesOf(const RecordedRun& run, const std::vector<std::string>& arguments,
                         Workspace* workspace);

/// Those of the folder, as they were run, that `workspace` does not hold yet.
Result<void> TakeRecorded(const RecordedRun& run, Workspace* workspace);

/// The case that `what` means: an id of `run`, if the run has it; an id of the suite; a file that holds one case; or
/// FILE/NAME (mine/wide, mine.yaml/wide) for a file outside the suite. It is then in `workspace`.
Result<Case> FindOneCase(const std::string& what, const RecordedRun* run, Workspace* workspace);

}  // namespace ulpscope
