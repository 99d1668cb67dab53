// What every command that ends in a report does with it: files, the matrix on stdout, the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <string>

#include "harness/base/result.h"
#include "harness/model/run_report.h"
#include "reports/details.h"

namespace ulpscope {

/// Files asked for on the command line; "-" is stdout.
struct ReportOutputs {
  std::map<std::string, std::string> files;  ///< name of the format -> FILE; empty where it was not asked for
  bool TakesStdout() const;
  bool Any() const;
};

/// `--NAME FILE` for every format. `outputs` must stay where it is.
void AddReportOptions(CLI::App* command, ReportOutputs* outputs);

/// More than one report for stdout is an error: neither could be read.
Result<void> CheckOutputs(const ReportOutputs& outputs);

/// Writes the formats of a run folder into `folder` (unless it is empty) and whatever `outputs` names.
Result<void> WriteReportFiles(const RunReport& report, const ReportDetails& details,
                              const std::filesystem::path& folder, const ReportOutputs& outputs);

/// Replaces `file` in one step, so that no reader sees half a report; what a link names, not the link. A device or a pipe is
/// written to.
Result<void> WriteFile(const std::filesystem::path& file, const std::string& text);

}  // namespace ulpscope
