// RunReport as JUnit XML.
#include "reports/junit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <pugixml.hpp>
#include <sstream>

#include "reports/cell.h"
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

double Seconds(const CaseResult& result) {
  double milliseconds = 0;
  for (const auto& [what, duration] : result.durations_ms) milliseconds += duration;
  return milliseconds / 1000;
}

/// No exponent: the schemas want decimals.
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

std::string Details(const CaseResult& result) {
  std::string text = result.reason + "\n";
  if (!result.outcome.text.empty() && result.reason.find(result.outcome.text) == std::string::npos) {
    text += fmt::format("outcome: {} {}: {}\n", Name(result.outcome.kind), result.outcome.error_class,
                        result.outcome.text);
  }
  for (const auto& name : result.value_order) {
    const auto value = result.values.find(name);
    if (value != result.values.end())
      text += fmt::format("{}: {} {}\n", name, CellText(value->second), value->second.classification.label);
  }
  return text + result.repro;
}

void AddCase(pugi::xml_node suite, const CaseResult& result) {
  const size_t slash = result.id.rfind('/', result.id.find('['));
  pugi::xml_node node = suite.append_child("testcase");
  Set(node, "name", slash == std::string::npos ? result.id : result.id.substr(slash + 1));
  Set(node, "classname", slash == std::string::npos ? result.id : result.id.substr(0, slash));
  Set(node, "time", Decimal(Seconds(result)));
  const Element element = ElementOf(result.status);
  const std::string status(Name(result.status));
  if (element == Element::kNone) return;
  if (element == Element::kSkipped) {
    Set(node.append_child("skipped"), "message",
        result.status == Status::kXfail ? status + ": " + result.reason : result.reason);
    return;
  }
  pugi::xml_node finding = node.append_child(element == Element::kFailure ? "failure" : "error");
  Set(finding, "message", result.reason);
  Set(finding, "type", status);
  finding.append_child(pugi::node_pcdata).set_value(XmlSafe(Details(result)).c_str());
}

void AddProperty(pugi::xml_node properties, const std::string& name, const std::string& value) {
  pugi::xml_node property = properties.append_child("property");
  Set(property, "name", name);
  Set(property, "value", value);
}

void AddSuite(pugi::xml_node root, const RunReport& report, const std::string& backend, int id) {
  std::vector<const CaseResult*> results;
  for (const auto& result : report.results) {
    if (result.backend == backend) results.push_back(&result);
  }
  const auto count = [&](Element element) {
    return std::count_if(results.begin(), results.end(),
                         [&](const CaseResult* r) { return ElementOf(r->status) == element; });
  };
  double seconds = 0;
  for (const CaseResult* result : results) seconds += Seconds(*result);
  pugi::xml_node suite = root.append_child("testsuite");
  Set(suite, "name", backend);
  Set(suite, "package", "ulpscope");
  Set(suite, "id", std::to_string(id));
  Set(suite, "hostname", "localhost");
  Set(suite, "timestamp", Timestamp(report.started));
  Set(suite, "tests", std::to_string(results.size()));
  Set(suite, "failures", std::to_string(count(Element::kFailure)));
  Set(suite, "errors", std::to_string(count(Element::kError)));
  Set(suite, "skipped", std::to_string(count(Element::kSkipped)));
  Set(suite, "time", Decimal(seconds));
  pugi::xml_node properties = suite.append_child("properties");
  AddProperty(properties, "seed", std::to_string(report.seed));
  if (const auto versions = report.versions.find(backend); versions != report.versions.end()) {
    for (const auto& [package, version] : versions->second)
      AddProperty(properties, "version." + package, version);
  }
  for (const CaseResult* result : results) AddCase(suite, *result);
  suite.append_child("system-out");
  suite.append_child("system-err");
}

}  // namespace

std::string WriteJunit(const RunReport& report) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node root = document.append_child("testsuites");
  std::vector<std::string> backends;
  for (const auto& result : report.results) {
    if (std::find(backends.begin(), backends.end(), result.backend) == backends.end())
      backends.push_back(result.backend);
  }
  for (size_t i = 0; i < backends.size(); ++i) AddSuite(root, report, backends[i], static_cast<int>(i));
  std::ostringstream stream;
  stream.imbue(std::locale::classic());
  document.save(stream, "  ", pugi::format_default, pugi::encoding_utf8);
  return stream.str();
}

}  // namespace ulpscope
