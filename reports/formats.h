// The file formats of a report: one row each. A new one is a pair of files, a golden, and its row in
// formats.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/model/run_report.h"

namespace ulpscope {

struct ReportFormat {
  std::string_view name;  ///< as in `ulpscope report --NAME FILE`
  std::string_view file;  ///< its name in a run folder
  std::string (*write)(const RunReport& report);
};

std::span<const ReportFormat> ReportFormats();

}  // namespace ulpscope
