// What a page drills down to, read from a run folder cell by cell: the case, the trace, and how far the elements lie from their
// exact values, which the oracle computes again.
#pragma once

#include "harness/cli/workspace.h"
#include "harness/record/journal.h"
#include "reports/details.h"

namespace ulpscope {

/// `run` and `workspace`, which holds its cases, must outlive what is returned.
ReportDetails DetailsOf(const RecordedRun& run, const Workspace& workspace);

/// The case as a derivation begins with it.
Explanation ExplanationOf(const Case& test_case);

}  // namespace ulpscope
