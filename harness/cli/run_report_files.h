// What every command that ends in a report does with it: files, the matrix on stdout, the exit code.
#pragma once

#include <filesystem>
#include <string>

#include "harness/base/result.h"
#include "harness/model/run_report.h"
#include "reports/console.h"

namespace ulpscope {

/// Files asked for on the command line; "-" is stdout.
struct ReportOutputs {
  std::string json, junit;
  bool TakesStdout() const { return json == "-" || junit == "-"; }
};

/// Writes report.json and junit.xml into `folder` (unless it is empty) and whatever `outputs` names.
Result<void> WriteReportFiles(const RunReport& report, const std::filesystem::path& folder,
                              const ReportOutputs& outputs);

/// Replaces `file` in one step, so that no reader sees half a report.
Result<void> WriteFile(const std::filesystem::path& file, const std::string& text);

}  // namespace ulpscope
