// RunReport as CSV.
#include "reports/csv_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "harness/base/text.h"
#include "harness/num/float_format.h"
#include "reports/cell.h"
#include "reports/findings.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

/// Spreadsheets run formulas in full-width signs too.
bool BeginsLikeAFormula(std::string_view text) {
  static constexpr std::array<std::string_view, 8> kSigns{
      "=", "+", "-", "@", "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0"};
  return std::ranges::any_of(kSigns, [&](std::string_view sign) { return text.starts_with(sign); });
}

std::string UlpField(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : CsvField("-inf");
  return ShortestDecimal(number);
}

/// The columns of one value.
std::vector<std::string> ValueFields(const std::string& name, const ValueResult& value) {
  const Classification& classification = value.classification;
  const bool measured = IsMeasured(classification.kind);
  return {CsvField(name),
          CsvField(Name(value.dtype)),
          CsvField(Join(value.shape, "x")),
          CsvField(CellText(value)),
          CsvField(Name(classification.kind)),
          CsvField(Name(value.contract)),
          std::to_string(classification.elements),
          std::to_string(classification.checked),
          measured ? UlpField(classification.max_ulp) : "",
          CsvField(classification.label)};
}

constexpr size_t kValueColumns = 10;

}  // namespace

std::string CsvField(std::string_view text) {
  std::string safe = TerminalSafe(text);
  if (BeginsLikeAFormula(safe)) safe.insert(safe.begin(), '\'');
  const bool quote =
      safe.find_first_of(",;\"") != std::string::npos || safe.starts_with(' ') || safe.ends_with(' ');
  if (!quote) return safe;
  std::string quoted = "\"";
  for (const char c : safe) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string WriteCsv(const RunReport& report) {
  std::string text =
      "id,backend,status,outcome,value,dtype,shape,class,classification,contract,elements,checked,max_ulp,"
      "label,"
      "parts,reason,repro\n";
  const FindingsOfCells findings(report);
  for (const CaseResult& result : report.results) {
    const std::vector<std::string> head{
        CsvField(result.id), CsvField(result.backend), CsvField(Name(result.status)),
        result.status == Status::kNotRun ? "" : CsvField(Name(result.outcome.kind))};
    const auto row = [&](const std::string& value, const std::vector<std::string>& of_value) {
      std::set<std::string> kinds;
      for (const Divergence* divergence : findings.Of(result)) {
        std::set<std::string> values(divergence->also.begin(), divergence->also.end());
        values.insert(divergence->value);
        if (divergence->value.empty() || values.contains(value)) kinds.emplace(Name(divergence->kind));
      }
      std::vector<std::string> fields = head;
      fields.insert(fields.end(), of_value.begin(), of_value.end());
      fields.push_back(CsvField(Join(std::vector<std::string>(kinds.begin(), kinds.end()), " ")));
      fields.push_back(CsvField(result.reason));
      fields.push_back(CsvField(result.repro));
      text += Join(fields, ",") + "\n";
    };
    bool any = false;
    for (const auto& [name, value] : result.ValuesInOrder()) {
      row(name, ValueFields(name, *value));
      any = true;
    }
    if (!any) row("", std::vector<std::string>(kValueColumns));
  }
  return text;
}

}  // namespace ulpscope
