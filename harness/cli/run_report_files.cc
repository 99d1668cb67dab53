// Writing reports.
#include "harness/cli/run_report_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "harness/cli/terminal.h"
#include "reports/formats.h"

namespace ulpscope {
namespace {

const std::string& Asked(const ReportOutputs& outputs, const ReportFormat& format) {
  return format.name == "json" ? outputs.json : outputs.junit;
}

}  // namespace

Result<void> WriteFile(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path temporary = file.string() + "." + std::to_string(::getpid()) + ".tmp";
  {
    std::ofstream stream(temporary, std::ios::binary);
    stream << text;
    stream.close();
    if (!stream) return Fail("cannot write " + file.string() + ": " + std::strerror(errno));
  }
  std::error_code code;
  std::filesystem::rename(temporary, file, code);
  if (code) return Fail("cannot write " + file.string() + ": " + code.message());
  return {};
}

Result<void> WriteReportFiles(const RunReport& report, const std::filesystem::path& folder,
                              const ReportOutputs& outputs) {
  for (const ReportFormat& format : ReportFormats()) {
    const std::string text = format.write(report);
    if (!folder.empty()) {
      if (auto written = WriteFile(folder / format.file, text); !written) return written;
    }
    const std::string& asked = Asked(outputs, format);
    if (asked == "-") {
      Print(text);
    } else if (!asked.empty()) {
      if (auto written = WriteFile(asked, text); !written) return written;
    }
  }
  return {};
}

}  // namespace ulpscope
