// The table of report formats.
#include "reports/formats.h"

#include <array>

#include "reports/annotations.h"
#include "reports/chrome_trace.h"
#include "reports/console.h"
#include "reports/csv_report.h"
#include "reports/html_report.h"
#include "reports/json_report.h"
#include "reports/junit_report.h"
#include "reports/markdown_report.h"

namespace ulpscope {
namespace {

/// A writer that only needs the report.
template <std::string (*kWrite)(const RunReport&)>
std::string ReportAlone(const RunReport& report, const ReportDetails&) {
  return kWrite(report);
}

}  // namespace

std::span<const ReportFormat> ReportFormats() {
  static constexpr std::array kFormats = std::to_array<ReportFormat>({
      {.name = "json",
       .file = "report.json",
       .about = "write the JSON report (reports/report.schema.json)",
       .write = ReportAlone<WriteJson>},
      {.name = "junit",
       .file = "junit.xml",
       .about = "write JUnit XML, which CI servers read",
       .write = ReportAlone<WriteJunit>},
      {.name = "html",
       .file = "",
       .about = "write one self-contained page: findings, matrix, derivations",
       .write = WriteHtml},
      {.name = "markdown",
       .file = "",
       .about = "write a summary for a CI job's page",
       .write = ReportAlone<WriteMarkdown>},
      {.name = "annotations",
       .file = "",
       .about = "write at most ten lines that GitHub shows as annotations",
       .write = ReportAlone<WriteAnnotations>},
      {.name = "csv",
       .file = "",
       .about = "write a table, one row for each observed value",
       .write = ReportAlone<WriteCsv>},
      {.name = "tables",
       .file = "",
       .about = "write what the console shows but for the list of findings",
       .write = ReportAlone<WriteTables>},
      {.name = "trace-out",
       .file = "",
       .about = "write the ops of every trace in Chrome's format, which Perfetto opens",
       .write = WriteChromeTrace},
  });
  return kFormats;
}

}  // namespace ulpscope
