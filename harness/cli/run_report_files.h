// The common end of every command that makes a report: files, the matrix on stdout, the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <string>

#include "harness/base/result.h"
#include "harness/model/run_report.h"
#include "reports/details.h"

namespace ulpscope {

/// Files requested on the command line; "-" is stdout.
struct ReportOutputs {
  std::map<std::string, std::string> files;  ///< name of the format -> FILE; empty where it was not asked for
  bool TakesStdout() const;
  bool Any() const;
};

/// `--NAME FILE` for every format. `outputs` must stay where it is.
void AddReportOptions(CLI::App* command, ReportOutputs* outputs);

/// Before anything runs: more than one report for stdout is an error, as neither could be read, and so is a file that cannot be
/// written where it is to lie. `run_folder` is the one that the command is about to make; files may lie in it.
Result<void> CheckOutputs(const ReportOutputs& outputs, const std::filesystem::path& run_folder = {});

/// The same of one file, which may be "-" or empty; `option` names it in the error.
Result<void> CheckWritable(const std::string& option, const std::filesystem::path& file,
                           const std::filesystem::path& run_folder = {});

/// Writes the formats of a run folder into `folder` (unless it is empty) and whatever `outputs` names.
Result<void> WriteReportFiles(const RunReport& report, const ReportDetails& details,
                              const std::filesystem::path& folder, const ReportOutputs& outputs);

/// ExitCode; a run in which nothing was checked is reported as such on stderr.
int SaidExitCode(const RunReport& report, Interruption interruption);

/// Replaces `file` in one step, so that no reader sees half a report; what a link names, not the link. A device or a pipe is
/// written to. In a run folder the name is replaced, whatever has it (harness/record/run_file.h).
Result<void> WriteFile(const std::filesystem::path& file, const std::string& text);

}  // namespace ulpscope
