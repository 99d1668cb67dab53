// A run's traces as Chrome's trace format, which Perfetto and chrome://tracing open: one process for each result, one thread for each
// stage, and the nesting of ops as nested slices.
#pragma once

#include <string>

#include "reports/details.h"

namespace ulpscope {

/// Durations are measured where an op has one (args.us). When an op began is not recorded: slices stand one behind the other, in the
/// order of the trace, and one without a duration takes a microsecond, or what its parts take.
std::string WriteChromeTrace(const RunReport& report, const ReportDetails& details);

}  // namespace ulpscope
