// Details behind a page's cells, read from a run folder cell by cell: the case, the trace, and the errors of
// the elements, for which the oracle computes the exact values again.
#pragma once

#include "harness/record/journal.h"
#include "harness/workspace/workspace.h"
#include "reports/details.h"

namespace ulpscope {

/// `run` and `workspace`, which holds its cases, must outlive what is returned.
ReportDetails DetailsOf(const RecordedRun& run, const Workspace& workspace);

/// The case as a derivation begins with it.
Explanation ExplanationOf(const Case& test_case);

}  // namespace ulpscope
