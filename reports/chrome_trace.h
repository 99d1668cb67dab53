// A run's traces in Chrome's trace format, for Perfetto and chrome://tracing: one process for each result, one thread
// for each stage, and the nesting of ops as nested slices.
#pragma once

#include <string>

#include "reports/details.h"

namespace ulpscope {

/// Durations are measured ones if an op has one (args.us). Start times are not recorded: slices follow one another in
/// the order of the trace, and one without a duration takes a microsecond, or the sum of its parts.
std::string WriteChromeTrace(const RunReport& report, const ReportDetails& details);

}  // namespace ulpscope
