// The table of report formats.
#include "reports/formats.h"

#include <array>

#include "reports/json_report.h"
#include "reports/junit_report.h"

namespace ulpscope {

std::span<const ReportFormat> ReportFormats() {
  static constexpr std::array<ReportFormat, 2> kFormats{{
      {.name = "json", .file = "report.json", .write = WriteJson},
      {.name = "junit", .file = "junit.xml", .write = WriteJunit},
  }};
  return kFormats;
}

}  // namespace ulpscope
