// Writing reports.
#include "harness/cli/run_report_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/cli/exit_codes.h"
#include "harness/cli/terminal.h"
#include "harness/record/journal.h"
#include "harness/record/run_file.h"
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

/// The path that `file` leads to, and the kind of file there.
struct Target {
  fs::path path;
  fs::file_type kind = fs::file_type::not_found;
};

Target TargetOf(const fs::path& file) {
  std::error_code code;
  Target target{.path = file};
  if (fs::is_symlink(file, code)) {
    if (fs::path named = fs::weakly_canonical(file, code); !code) target.path = std::move(named);
  }
  target.kind = fs::status(target.path, code).type();
  return target;
}

fs::path TemporaryFor(const fs::path& target) {
  return target.string() + "." + std::to_string(::getpid()) + ".tmp";
}

/// Whether `folder` comes to be when `made` is made with all folders above it.
bool WillBeMade(const fs::path& folder, const fs::path& made) {
  std::error_code code;
  if (made.empty() || fs::exists(folder, code)) return false;
  const fs::path whole = fs::absolute(made).lexically_normal() / "";
  const fs::path part = folder.lexically_normal() / "";
  return std::mismatch(part.begin(), std::prev(part.end()), whole.begin(), whole.end()).first ==
         std::prev(part.end());
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

Result<void> CheckWritable(const std::string& option, const fs::path& file, const fs::path& run_folder) {
  if (file.empty() || file == "-" || WillBeMade(fs::absolute(file).parent_path(), run_folder)) return {};
  const auto refused = [&](const std::string& why) { return Fail(Error{.message = why, .hint = option}); };
  const std::string start = "cannot write " + file.string() + ": ";
  const Target target = TargetOf(file);
  std::error_code code;
  if (target.kind == fs::file_type::directory) return refused(start + std::strerror(EISDIR));
  if (target.kind == fs::file_type::regular || target.kind == fs::file_type::not_found) {
    // Does the same as WriteFile, with no text.
    const fs::path temporary = TemporaryFor(target.path);
    const auto written = WriteStream(temporary, file, "");
    fs::remove(temporary, code);
    if (!written) return refused(written.error().message);
  } else if (::access(target.path.c_str(), W_OK) != 0) {
    return refused(start + std::strerror(errno));
  }
  return {};
}

Result<void> CheckOutputs(const ReportOutputs& outputs, const fs::path& run_folder) {
  std::vector<std::string> names;
  for (const auto& [name, file] : outputs.files) {
    if (file == "-") names.push_back("--" + name);
    ULPSCOPE_TRY(CheckWritable("--" + name, file, run_folder));
  }
  if (names.size() <= 1) return {};
  return Fail(
      Problem("stdout takes one report", Join(names, " and "), "one of them, the others with a file"));
}

int SaidExitCode(const RunReport& report, Interruption interruption) {
  const int code = ExitCode(report, interruption);
  if (code == kExitNothing)
    PrintError(fmt::format(
        "ulpscope: nothing was checked: in {}, no element was held against an exact value or another backend",
        Counted(report.results.size(), "result")));
  return code;
}

Result<void> WriteFile(const fs::path& file, const std::string& text) {
  // A link in a run folder may be anybody's.
  if (HoldsRun(file.parent_path()))
    return ReplaceRunFile({.folder = file.parent_path(), .name = file.filename().string()}, text,
                          FileMode::kShared);
  std::error_code code;
  const auto [target, kind] = TargetOf(file);
  if (kind != fs::file_type::not_found && kind != fs::file_type::regular)
    return WriteStream(target, file, text);
  const fs::path temporary = TemporaryFor(target);
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
      const RunFile file{.folder = folder, .name = std::string(format.file)};
      ULPSCOPE_TRY(ReplaceRunFile(file, text, FileMode::kShared));
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
