// RunReport as JUnit XML.
#include "reports/junit_report.h"

#include <fmt/format.h>

#include <pugixml.hpp>
#include <sstream>
#include <unordered_map>

#include "harness/base/distinct.h"
#include "harness/base/find.h"
#include "harness/base/text.h"
#include "reports/births.h"
#include "reports/cell.h"
#include "reports/findings.h"
#include "reports/ledger.h"
#include "reports/places.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

enum class Element { kNone, kFailure, kError, kSkipped };

Element ElementOf(Status status) {
  switch (status) {
    case Status::kPass:
      return Element::kNone;
    case Status::kSkip:
    case Status::kXfail:
      return Element::kSkipped;
    case Status::kFail:
    case Status::kXpass:
    case Status::kNondet:
    case Status::kUnmodelled:
    case Status::kInconclusive:
      return Element::kFailure;
    case Status::kHarness:
    case Status::kProtocol:
    case Status::kCrash:
    case Status::kTimeout:
    case Status::kOom:
    case Status::kTainted:
    case Status::kNotRun:
      break;
  }
  return Element::kError;
}

void Set(pugi::xml_node node, const char* name, const std::string& text) {
  node.append_attribute(name).set_value(XmlSafe(text).c_str());
}

/// Without an exponent: the schemas require decimals.
std::string Decimal(double seconds) { return fmt::format("{:.3f}", seconds); }

/// "2026-11-20T22:53:37": Ant's schema allows no zone.
std::string Timestamp(const std::string& started) {
  constexpr size_t kLength = 19;
  const std::string shape = "dddd-dd-ddTdd:dd:dd";
  const auto fits = [&] {
    if (started.size() < kLength) return false;
    for (size_t i = 0; i < kLength; ++i) {
      const bool digit = started[i] >= '0' && started[i] <= '9';
      if (shape[i] == 'd' ? !digit : started[i] != shape[i]) return false;
    }
    return true;
  };
  return fits() ? started.substr(0, kLength) : "1970-01-01T00:00:00";
}

constexpr size_t kColumns = 100;

/// A finding, as on the console.
std::string FindingLines(const RunReport& report, const Divergence& divergence, const std::string& subject) {
  const std::string head = fmt::format("  {:<10} ", Name(divergence.kind));
  return Wrap(head, subject, kColumns) +
         Wrap("    ", WithPlaces(BriefSentence(divergence), SourcePlacesOf(report, divergence)), kColumns);
}

/// The failing line of the console, the findings of the cell, its values; the command that repeats it comes last.
std::string Details(const RunReport& report, const CaseResult& result,
                    const std::vector<const Divergence*>& findings) {
  std::string text = Wrap(fmt::format("{}  ", Name(result.status)), FailureText(result), kColumns);
  if (!result.outcome.text.empty() && result.reason.find(result.outcome.text) == std::string::npos) {
    text += fmt::format("outcome: {} {}: {}\n", Name(result.outcome.kind), result.outcome.error_class,
                        result.outcome.text);
  }
  for (const Divergence* divergence : findings) {
    if (PartsClasses(*divergence)) text += FindingLines(report, *divergence, FindingValues(*divergence));
  }
  for (const auto& [name, value] : result.ValuesInOrder())
    text += fmt::format("{}: {} {}\n", name, CellText(*value), value->classification.label);
  return text + result.repro;
}

/// A test case of `id`: its folders are the class. Sweeps may hold slashes.
pugi::xml_node AppendCase(pugi::xml_node suite, const std::string& id, const std::string& what,
                          const std::string& seconds) {
  const size_t slash = id.rfind('/', id.find('['));
  pugi::xml_node node = suite.append_child("testcase");
  Set(node, "name", (slash == std::string::npos ? id : id.substr(slash + 1)) + what);
  Set(node, "classname", slash == std::string::npos ? id : id.substr(0, slash));
  Set(node, "time", seconds);
  return node;
}

/// `file` and `line` of the source that the step of `value` was captured from, for GitLab, CircleCI, Buildkite and
/// Jenkins' JUnit plugin. Nothing if it was not captured: the strict schema of Jenkins' xUnit plugin has neither.
void SetSource(pugi::xml_node node, const RunReport& report, const std::string& case_id,
               const std::string& value) {
  const StepOrigin* origin = OriginOf(report, case_id, value);
  if (origin == nullptr || origin->file.empty()) return;
  Set(node, "file", origin->file);
  Set(node, "line", std::to_string(origin->line));
}

void AddCase(pugi::xml_node suite, const RunReport& report, const CaseResult& result,
             const std::vector<const Divergence*>& findings) {
  pugi::xml_node node = AppendCase(suite, result.id, "", Decimal(result.Milliseconds() / 1000));
  const Element element = ElementOf(result.status);
  const std::string status(Name(result.status));
  if (element == Element::kNone) return;
  if (element == Element::kSkipped) {
    Set(node.append_child("skipped"), "message",
        result.status == Status::kXfail ? status + ": " + result.reason : result.reason);
    return;
  }
  if (!result.status_values.empty()) SetSource(node, report, result.id, result.status_values.front());
  pugi::xml_node finding = node.append_child(element == Element::kFailure ? "failure" : "error");
  Set(finding, "message", result.reason);
  Set(finding, "type", status);
  finding.append_child(pugi::node_pcdata).set_value(XmlSafe(Details(report, result, findings)).c_str());
}

void AddProperty(pugi::xml_node properties, const std::string& name, const std::string& value) {
  pugi::xml_node property = properties.append_child("property");
  Set(property, "name", name);
  Set(property, "value", value);
}

struct SuiteCounts {
  size_t tests = 0, failures = 0, errors = 0, skipped = 0;
  double seconds = 0;
};

/// A suite in the form that Ant's schema requires; its properties, test cases and output follow, in this order.
pugi::xml_node AppendSuite(pugi::xml_node root, const RunReport& report, const std::string& name, size_t id,
                           const SuiteCounts& counts) {
  pugi::xml_node suite = root.append_child("testsuite");
  Set(suite, "name", name);
  Set(suite, "package", "ulpscope");
  Set(suite, "id", std::to_string(id));
  Set(suite, "hostname", "localhost");
  Set(suite, "timestamp", Timestamp(report.started));
  Set(suite, "tests", std::to_string(counts.tests));
  Set(suite, "failures", std::to_string(counts.failures));
  Set(suite, "errors", std::to_string(counts.errors));
  Set(suite, "skipped", std::to_string(counts.skipped));
  Set(suite, "time", Decimal(counts.seconds));
  AddProperty(suite.append_child("properties"), "seed", std::to_string(report.seed));
  if (const std::string summary = LedgerSummary(report); !summary.empty())
    AddProperty(suite.child("properties"), "summary", summary);
  return suite;
}

void AddOutput(pugi::xml_node suite, const std::string& output) {
  pugi::xml_node out = suite.append_child("system-out");
  if (!output.empty()) out.append_child(pugi::node_pcdata).set_value(XmlSafe(output).c_str());
  suite.append_child("system-err");
}

void AddSuite(pugi::xml_node root, const RunReport& report, const FindingsOfCells& findings,
              const std::vector<const CaseResult*>& results, size_t id) {
  const std::string& backend = results.front()->backend;
  SuiteCounts counts;
  for (const CaseResult* each : results) {
    const CaseResult& result = *each;
    const Element element = ElementOf(result.status);
    counts.failures += element == Element::kFailure;
    counts.errors += element == Element::kError;
    counts.skipped += element == Element::kSkipped;
    counts.seconds += result.Milliseconds() / 1000;
  }
  counts.tests = results.size();
  pugi::xml_node suite = AppendSuite(root, report, backend, id, counts);
  if (const auto versions = report.versions.find(backend); versions != report.versions.end()) {
    for (const auto& [package, version] : versions->second)
      AddProperty(suite.child("properties"), "version." + package, version);
  }
  std::string output;
  for (const CaseResult* result : results) {
    AddCase(suite, report, *result, findings.Of(*result));
    for (const NonFiniteBirth& birth : result->not_finite)
      output +=
          Wrap("  not finite ", result->id, kColumns) + Wrap("    ", BirthSentence(birth, ""), kColumns);
    for (const Divergence* divergence : findings.Of(*result)) {
      if (PartsClasses(*divergence)) output += FindingLines(report, *divergence, FindingSubject(*divergence));
    }
  }
  AddOutput(suite, output);
}

/// A divergence fails nothing, and a test case that passes is not shown: it is a test case of its own, skipped with its
/// sentence. Its name stays the same from night to night.
void AddDivergences(pugi::xml_node root, const RunReport& report, size_t id) {
  SuiteCounts counts;
  for (const auto& divergence : report.divergences) counts.tests += PartsClasses(divergence);
  counts.skipped = counts.tests;
  pugi::xml_node suite = AppendSuite(root, report, "divergences", id, counts);
  for (const auto& divergence : report.divergences) {
    if (!PartsClasses(divergence)) continue;
    std::vector<std::string> groups;
    for (const auto& group : divergence.backends) groups.push_back(Join(group, ", "));
    const std::string what =
        fmt::format(": {}{}{}, {}", Name(divergence.kind), divergence.value.empty() ? "" : " of ",
                    divergence.value, Join(groups, " | "));
    pugi::xml_node node = AppendCase(suite, divergence.case_id, what, Decimal(0));
    SetSource(node, report, divergence.case_id, divergence.value);
    const std::string sentence = WithPlaces(divergence.sentence, SourcePlacesOf(report, divergence));
    Set(node.append_child("skipped"), "message",
        fmt::format("{}{}", divergence.basis == "likely" ? "likely: " : "", sentence));
  }
  AddOutput(suite, FindingsTitle(report.divergences, "") + "\n");
}

}  // namespace

std::string WriteJunit(const RunReport& report) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node root = document.append_child("testsuites");
  Distinct backends;
  std::unordered_map<std::string, std::vector<const CaseResult*>> of_backend;
  for (const auto& result : report.results) {
    backends.Add(result.backend);
    of_backend[result.backend].push_back(&result);
  }
  const FindingsOfCells findings(report);
  for (size_t i = 0; i < backends.texts().size(); ++i)
    AddSuite(root, report, findings, of_backend[backends.texts()[i]], i);
  if (!report.divergences.empty()) AddDivergences(root, report, backends.texts().size());
  std::ostringstream stream;
  stream.imbue(std::locale::classic());
  document.save(stream, "  ", pugi::format_default, pugi::encoding_utf8);
  return stream.str();
}

}  // namespace ulpscope
