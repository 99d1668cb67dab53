// Parts of the JSON report, each a pure function of its input.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/run_report.h"
#include "reports/births.h"
#include "reports/decisive.h"
#include "reports/findings.h"
#include "reports/ledger.h"

namespace ulpscope::json_parts {

using Json = nlohmann::ordered_json;

Json Text(std::string_view text);
Json Number(double value);
Json Texts(const std::vector<std::string>& texts);
Json TextMap(const std::map<std::string, std::string>& entries);
/// Durations, to the thousandth: the rest is noise.
Json Durations(const std::map<std::string, double>& entries);
Json Words(const std::map<std::string, std::vector<std::string>>& entries);

/// The names of models, each once: a value names hundreds, and the same ones as the next value does.
class ModelTable {
 public:
  size_t Index(const PrecisionModel& model) {
    const auto [place, added] = index_.try_emplace(model, names_.size());
    if (added) names_.push_back(model.Name());
    return place->second;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<PrecisionModel, size_t> index_;
  std::vector<std::string> names_;
};

/// The exclusions of all values, each once: backends with the same bits have the same exclusions.
class ExclusionTable {
 public:
  /// The index of `exclusion` as it is reported; its model is an index into `models`.
  size_t Index(const Exclusion& exclusion, ModelTable& models) {
    Json json{{"model", models.Index(exclusion.model)},
              {"element", exclusion.element},
              {"why", Text(exclusion.why)},
              {"observed", Number(exclusion.observed)},
              {"reference", Number(exclusion.reference)},
              {"low", Number(exclusion.low)},
              {"high", Number(exclusion.high)}};
    if (!exclusion.further_input.empty()) json["further_input"] = Text(exclusion.further_input);
    const auto [place, added] = index_.try_emplace(json.dump(), texts_.size());
    if (added) texts_.push_back(&place->first);
    return place->second;
  }
  /// As JSON, in the order in which they are first named.
  const std::vector<const std::string*>& texts() const { return texts_; }

 private:
  std::map<std::string, size_t> index_;
  std::vector<const std::string*> texts_;
};

/// The tables to which results refer by index.
struct Tables {
  ModelTable models;
  ExclusionTable exclusions;
};

/// How long the conversions of a result took: volatile.
Json CastShares(const std::vector<CastCost>& costs);
Json OriginJson(const StepOrigin& at);
Json ResultJson(const RunReport& report, const CaseResult& result, const DecisiveExclusions& decisive,
                Tables& tables);
Json SharedBirthJson(const RunReport& report, const SharedBirth& shared);
Json DivergenceJson(const RunReport& report, const Divergence& divergence);
Json FindingJson(const RunReport& report, const WeighedDivergence& finding);
Json AccountJson(const AccountEntry& entry);
Json LedgerJson(const Ledger& ledger);
Json BudgetJson(const ErrorBudget& budget);
Json KnobJson(const KnobEffect& effect);
/// Adds the origin of the step that gives `value`, if it is known.
void AddOrigin(const RunReport& report, const std::string& case_id, const std::string& value, Json* json);

}  // namespace ulpscope::json_parts
