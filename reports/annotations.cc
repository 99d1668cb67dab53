// RunReport as workflow commands.
#include "reports/annotations.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "reports/births.h"
#include "reports/findings.h"
#include "reports/matrix.h"
#include "reports/places.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

constexpr size_t kMostAnnotations = 10;

/// The message of a workflow command ends at a line break; %, and in a property : and , are written as codes.
std::string Escaped(std::string_view text, std::string_view codes) {
  std::string escaped;
  for (const char c : TerminalSafe(text)) {
    if (codes.find(c) == std::string_view::npos) {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

/// "file=model.py,line=7,": the source that the value was captured from, else its step in the case's file, else the
/// case; empty if unknown.
std::string PlaceOf(const RunReport& report, const std::string& id, const std::string& value) {
  const SourceLine place = SourceLineOf(report, id, value);
  return place.line == 0 ? "" : fmt::format("file={},line={},", Escaped(place.file, "%:,"), place.line);
}

std::string Command(std::string_view level, std::string_view place, std::string_view title,
                    std::string_view message) {
  return fmt::format("::{} {}title={}::{}\n", level, place, Escaped(title, "%:,"), Escaped(message, "%"));
}

}  // namespace

std::string WriteAnnotations(const RunReport& report) {
  std::vector<std::string> lines;
  for (const CaseResult& result : report.results) {
    if (IsFailing(result.status))
      lines.push_back(Command(
          "error",
          PlaceOf(report, result.id, result.status_values.empty() ? "" : result.status_values.front()),
          fmt::format("{} {}", Name(result.status), result.id),
          fmt::format("{}: {}", result.backend, result.reason)));
  }
  const size_t failures = lines.size();
  for (const Divergence& divergence : report.divergences) {
    if (PartsClasses(divergence))
      lines.push_back(Command("warning", PlaceOf(report, divergence.case_id, divergence.value),
                              fmt::format("{} {}", Name(divergence.kind), FindingSubject(divergence)),
                              WithPlaces(BriefSentence(divergence), SourcePlacesOf(report, divergence))));
  }
  for (const SharedBirth& each : SharedBirthsOf(report)) {
    if (!each.diverges)
      lines.push_back(Command("warning", PlaceOf(report, each.case_id, each.birth->born.value),
                              fmt::format("{} {}  {}", each.birth->what, each.case_id, each.birth->values[0]),
                              BirthSentence(report, each)));
  }
  if (lines.size() > kMostAnnotations) {
    const size_t shown = kMostAnnotations - 1;
    const size_t more_failures = failures > shown ? failures - shown : 0;
    const size_t more_findings = lines.size() - shown - more_failures;
    lines.resize(shown);
    lines.push_back(
        Command(more_failures > 0 ? "error" : "notice", "", "ulpscope",
                fmt::format("and {} more failures, {} more findings", more_failures, more_findings)));
  }
  std::string text;
  for (const auto& line : lines) text += line;
  return text;
}

}  // namespace ulpscope
