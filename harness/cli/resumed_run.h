// The part of a run that its continuation takes over: its cases and its columns.
#pragma once

#include <vector>

#include "harness/cli/knob_sweep.h"
#include "harness/record/journal.h"
#include "harness/run/backend.h"
#include "harness/workspace/workspace.h"

namespace ulpscope {

/// Whether the run opened programs step by step. One that did may hold none all the same, where no case has steps.
bool HasOpenedPrograms(const RunHeader& header);

/// The cases of the run, as it ran them, into `workspace`.
Result<void> LoadCasesToResume(const RecordedRun& run, Workspace* workspace);

/// The columns of the run. One that is not installed here and was there is an error: what it has not computed would be recorded as
/// what it cannot.
Result<std::vector<BackendSpec>> BackendsToResume(const RecordedRun& run, const Registry& registry);

/// The sweep of knobs that the run is, if it is one.
KnobSweep SweepToResume(const RunHeader& header, const std::vector<BackendSpec>& backends);

}  // namespace ulpscope
