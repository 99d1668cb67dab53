// Writing reports.
#include "harness/cli/run_report_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/cli/terminal.h"
#include "reports/formats.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

Result<void> WriteStream(const fs::path& file, const fs::path& shown, const std::string& text) {
  errno = 0;
  std::ofstream stream(file, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream) return Fail("cannot write " + shown.string() + ": " + std::strerror(errno));
  return {};
}

}  // namespace

bool ReportOutputs::TakesStdout() const {
  return std::ranges::any_of(files, [](const auto& file) { return file.second == "-"; });
}

bool ReportOutputs::Any() const {
  return std::ranges::any_of(files, [](const auto& file) { return !file.second.empty(); });
}

void AddReportOptions(CLI::App* command, ReportOutputs* outputs) {
  for (const ReportFormat& format : ReportFormats()) {
    const std::string name(format.name);
    command->add_option("--" + name, outputs->files[name], std::string(format.about) + "; - is stdout");
  }
}

Result<void> CheckOutputs(const ReportOutputs& outputs) {
  std::vector<std::string> names;
  for (const auto& [name, file] : outputs.files) {
    if (file == "-") names.push_back("--" + name);
  }
  if (names.size() <= 1) return {};
  return Fail(
      Problem("stdout takes one report", Join(names, " and "), "one of them, the others with a file"));
}

Result<void> WriteFile(const fs::path& file, const std::string& text) {
  std::error_code code;
  fs::path target = file;
  if (fs::is_symlink(file, code)) {
    if (fs::path named = fs::weakly_canonical(file, code); !code) target = std::move(named);
  }
  const fs::file_status status = fs::status(target, code);
  if (fs::exists(status) && !fs::is_regular_file(status)) return WriteStream(target, file, text);
  const fs::path temporary = target.string() + "." + std::to_string(::getpid()) + ".tmp";
  auto written = WriteStream(temporary, file, text);
  if (written) {
    fs::rename(temporary, target, code);
    if (code) written = Fail("cannot write " + file.string() + ": " + code.message());
  }
  if (!written) fs::remove(temporary, code);
  return written;
}

Result<void> WriteReportFiles(const RunReport& report, const ReportDetails& details, const fs::path& folder,
                              const ReportOutputs& outputs) {
  for (const ReportFormat& format : ReportFormats()) {
    const std::string asked = LookupOr(outputs.files, std::string(format.name));
    const bool in_folder = !folder.empty() && !format.file.empty();
    if (asked.empty() && !in_folder) continue;
    const std::string text = format.write(report, details);
    if (in_folder) {
      ULPSCOPE_TRY(WriteFile(folder / format.file, text));
    }
    if (asked == "-") {
      ULPSCOPE_TRY(PrintReport(text));
    } else if (!asked.empty()) {
      ULPSCOPE_TRY(WriteFile(asked, text));
    }
  }
  return {};
}

}  // namespace ulpscope
