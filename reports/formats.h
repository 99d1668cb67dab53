// The file formats of a report: one row each. A new one is a pair of files, a golden, and its row in
// formats.cc; the commands take their options from here.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/model/run_report.h"
#include "reports/details.h"

namespace ulpscope {

struct ReportFormat {
  std::string_view name;   ///< as in `ulpscope report --NAME FILE`
  std::string_view file;   ///< its name in a run folder; empty: only written on request
  std::string_view about;  ///< of the option
  std::string (*write)(const RunReport& report, const ReportDetails& details);
};

std::span<const ReportFormat> ReportFormats();

}  // namespace ulpscope
