// Terminal facts.
#include "harness/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "reports/text_safe.h"

namespace ulpscope {
namespace {

int g_lost = 0;  // errno of the first write to stdout that failed

}  // namespace

bool IsTerminal(int file_descriptor) { return ::isatty(file_descriptor) == 1; }

ConsoleOptions DetectConsole() {
  ConsoleOptions options;
  if (!IsTerminal(STDOUT_FILENO)) return options;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) options.columns = size.ws_col;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool plain =
      (no_color != nullptr && *no_color != '\0') || term == nullptr || std::string_view(term) == "dumb";
  if (!plain) options.color = ConsoleOptions::Color::kAlways;
  return options;
}

void Print(const std::string& text) {
  errno = 0;
  const bool whole =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!whole && errno != EPIPE && g_lost == 0) g_lost = errno == 0 ? EIO : errno;
}

Result<void> PrintReport(const std::string& text) {
  Print(text);
  return PrintedWhole();
}

Result<void> PrintedWhole() {
  if (g_lost == 0) return {};
  return Fail(std::string("cannot write to stdout: ") + std::strerror(g_lost));
}

void PrintError(const std::string& line) {
  const std::string safe = TerminalSafe(line) + "\n";
  std::fwrite(safe.data(), 1, safe.size(), stderr);
}

void PrintError(const Error& error) {
  // Errors of case files begin with their place, which editors and CI logs understand only at the start of a
  // line.
  PrintError(error.pos.file.empty() ? "ulpscope: " + error.Text() : error.Text());
}

void PrintNotes(const std::vector<std::string>& notes) {
  for (const auto& note : notes) PrintError("ulpscope: note: " + note);
}

}  // namespace ulpscope
