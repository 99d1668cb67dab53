// Access to the contents of a run folder besides its report, for the formats with drill-down. It is read cell by cell:
// a run may hold more than fits a page, or memory.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/model/run_report.h"
#include "reports/explanation.h"

namespace ulpscope {

/// How far observed elements lie from their exact values.
struct ErrorSample {
  std::vector<double> ulp =
      {};  ///< signed, in ulps of the value's dtype, in the order of the elements; NaN if not finite
  int64_t elements = 0;  ///< of the value; if more than in `ulp`, that has evenly spaced ones
};

struct CellDetails {
  std::vector<TraceNode> trace;
  std::map<std::string, ErrorSample> errors;  ///< by value
};

/// Empty functions: nothing but the report is there.
struct ReportDetails {
  std::function<Explanation(const std::string& case_id)> of_case;
  std::function<CellDetails(const CaseResult& result)> of_cell;
  std::function<std::vector<TraceNode>(const CaseResult& result)> of_trace = {};
};

}  // namespace ulpscope
