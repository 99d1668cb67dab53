// RunReport as JSON.
#include "reports/json_report.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "harness/base/build_info.h"
#include "harness/base/find.h"
#include "harness/base/text.h"
#include "reports/births.h"
#include "reports/decisive.h"
#include "reports/json_parts.h"
#include "reports/ledger.h"
#include "reports/places.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace json_parts {
namespace {

Json Counts(const RunReport& report) {
  std::array<int64_t, static_cast<size_t>(Status::kPass) + 1> counts{};
  for (const auto& result : report.results) ++counts[static_cast<size_t>(result.status)];
  Json object = Json::object();
  for (size_t status = counts.size(); status-- > 0;)
    object[std::string(Name(static_cast<Status>(status)))] = counts[status];
  return object;
}

Json Run(const RunReport& report) {
  Json versions = Json::object();
  for (const auto& [backend, packages] : report.versions) versions[Utf8Safe(backend)] = TextMap(packages);
  Json environment = Json::object();
  for (const auto& [variable, preset] : report.environment)
    environment[Utf8Safe(variable)] = preset ? Text(*preset) : Json(nullptr);
  Json json = {{"seed", report.seed},
               {"complete", report.complete},
               {"versions", versions},
               {"environment", environment},
               {"not_installed", TextMap(report.not_installed)},
               {"ulpscope", std::string(Version())}};
  if (report.limit)
    json["limit"] = {{"minutes", Number(report.limit->minutes)}, {"left_out", Texts(report.limit->left_out)}};
  return json;
}

Json Volatile(const RunReport& report) {
  Json cases = Json::object(), casts = Json::object();
  for (const auto& result : report.results) {
    const std::string cell = Utf8Safe(result.id + "@" + result.backend);
    if (!result.durations_ms.empty()) cases[cell] = Durations(result.durations_ms);
    if (Json shares = CastShares(result.cast_costs); !shares.empty()) casts[cell] = std::move(shares);
  }
  Json json = {{"id", Text(report.id)},
               {"started", Text(report.started)},
               {"durations", {{"run_s", Durations(report.durations_s)}, {"cases_ms", cases}}},
               {"casts_us", casts}};
  if (!report.oracle_engine.empty()) {
    json["oracle"] = {{"engine", Text(report.oracle_engine)},
                      {"elements_fast", report.oracle_counts.fast},
                      {"elements_compared", report.oracle_counts.compared},
                      {"elements_boost", report.oracle_counts.boost}};
  }
  return json;
}

/// Writes one entry a line: small, and two runs can be compared by lines. Each becomes text before the next one is
/// made, because the results of a long run take ten times their text as objects.
template <class Entries, class ToText>
void AddLines(const char* key, const Entries& entries, const ToText& to_text, std::string* text) {
  *text += fmt::format("\"{}\": [", key);
  bool first = true;
  for (const auto& entry : entries) {
    *text += std::exchange(first, false) ? "\n" : ",\n";
    *text += to_text(entry);
  }
  *text += first ? "],\n" : "\n],\n";
}

}  // namespace
}  // namespace json_parts

std::string WriteLedgerJson(const Ledger& ledger) { return json_parts::LedgerJson(ledger).dump(); }

std::string WriteJson(const RunReport& report) {
  using namespace json_parts;  // NOLINT: this function's alone
  const DecisiveExclusions decisive(report);
  Tables tables;
  std::string text = "{\n\"schema\": \"ulpscope.report/3\",\n";
  text += "\"run\": " + Run(report).dump(2) + ",\n\"counts\": " + Counts(report).dump(2) + ",\n";
  AddLines(
      "results", report.results,
      [&](const CaseResult& result) { return ResultJson(report, result, decisive, tables).dump(); }, &text);
  AddLines(
      "models", tables.models.names(), [](const std::string& name) { return Json(name).dump(); }, &text);
  AddLines(
      "exclusions", tables.exclusions.texts(), [](const std::string* one) { return *one; }, &text);
  AddLines(
      "divergences", report.divergences, [&](const auto& one) { return DivergenceJson(report, one).dump(); },
      &text);
  AddLines(
      "findings", ByWeight(report), [&](const auto& one) { return FindingJson(report, one).dump(); }, &text);
  AddLines(
      "not_finite", SharedBirthsOf(report),
      [&](const auto& one) { return SharedBirthJson(report, one).dump(); }, &text);
  AddLines(
      "account", report.account, [](const auto& one) { return AccountJson(one).dump(); }, &text);
  text += "\"summary\": " + Json(Text(LedgerSummary(report))).dump() + ",\n";
  AddLines(
      "ledgers", report.ledgers, [](const Ledger& one) { return LedgerJson(one).dump(); }, &text);
  AddLines(
      "budgets", report.budgets, [](const ErrorBudget& one) { return BudgetJson(one).dump(); }, &text);
  AddLines(
      "knobs", report.knobs, [](const auto& one) { return KnobJson(one).dump(); }, &text);
  text += "\"volatile\": " + Volatile(report).dump() + "\n}\n";
  return text;
}

}  // namespace ulpscope
