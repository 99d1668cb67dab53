// RunReport as JSON.
#include "reports/json_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "harness/base/build_info.h"
#include "harness/base/find.h"
#include "harness/base/text.h"
#include "reports/decisive.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

using Json = nlohmann::ordered_json;

Json Text(std::string_view text) { return Utf8Safe(text); }

Json Number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json Texts(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const auto& text : texts) list.push_back(Text(text));
  return list;
}

Json TextMap(const std::map<std::string, std::string>& entries) {
  Json object = Json::object();
  for (const auto& [key, text] : entries) object[Utf8Safe(key)] = Text(text);
  return object;
}

/// Durations, to the thousandth: the rest is noise.
Json Durations(const std::map<std::string, double>& entries) {
  Json object = Json::object();
  for (const auto& [key, number] : entries)
    object[Utf8Safe(key)] = std::isfinite(number) ? Json(std::round(number * 1e3) / 1e3) : Number(number);
  return object;
}

Json Words(const std::map<std::string, std::vector<std::string>>& entries) {
  Json object = Json::object();
  for (const auto& [key, words] : entries) object[Utf8Safe(key)] = Texts(words);
  return object;
}

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

/// What values exclude, each once: backends with the same bits exclude the same.
class ExclusionTable {
 public:
  /// Of what is told of `exclusion`, its model an index into `models`.
  size_t Index(const Exclusion& exclusion, ModelTable& models) {
    std::string text = Json({{"model", models.Index(exclusion.model)},
                             {"element", exclusion.element},
                             {"why", Text(exclusion.why)},
                             {"observed", Number(exclusion.observed)},
                             {"reference", Number(exclusion.reference)},
                             {"low", Number(exclusion.low)},
                             {"high", Number(exclusion.high)}})
                           .dump();
    const auto [place, added] = index_.try_emplace(std::move(text), texts_.size());
    if (added) texts_.push_back(&place->first);
    return place->second;
  }
  /// As JSON, in the order in which they are first named.
  const std::vector<const std::string*>& texts() const { return texts_; }

 private:
  std::map<std::string, size_t> index_;
  std::vector<const std::string*> texts_;
};

/// What results name, which stands in tables of its own.
struct Tables {
  ModelTable models;
  ExclusionTable exclusions;
};

/// Longer lists say of a value no more than their length does; the run folder has them whole.
constexpr size_t kMostListed = 64;

void AddModels(const char* key, const std::vector<PrecisionModel>& models, ModelTable& table, Json* value) {
  Json list = Json::array();
  for (size_t i = 0; i < std::min(models.size(), kMostListed); ++i) list.push_back(table.Index(models[i]));
  (*value)[key] = std::move(list);
  if (models.size() > kMostListed) (*value)[std::string(key) + "_count"] = models.size();
}

Json Facets(const Classification& classification) {
  Json facets = Json::object();
  facets["in"] = Words(classification.facets_in);
  for (const char* facet : {"prod", "acc", "mid", "out"}) {
    const auto* words = Lookup(classification.facets, facet);
    facets[facet] = words == nullptr ? Json::array() : Texts(*words);
  }
  return facets;
}

Json Excluded(const std::vector<const Exclusion*>& exclusions, Tables& tables) {
  Json list = Json::array();
  for (const Exclusion* exclusion : exclusions)
    list.push_back(tables.exclusions.Index(*exclusion, tables.models));
  return list;
}

Json Value(const ValueResult& value, const std::vector<const Exclusion*>& decisive, Tables& tables) {
  const Classification& classification = value.classification;
  const bool measured = IsMeasured(classification.kind);
  Json json = {{"dtype", Name(value.dtype)},
               {"shape", value.shape},
               {"elements", classification.elements},
               {"checked", classification.checked}};
  if (measured) {
    json["max_ulp"] = Number(classification.max_ulp);
    json["max_abs"] = Number(classification.max_abs);
  }
  json["classification"] = Name(classification.kind);
  AddModels("models", classification.models, tables.models, &json);
  AddModels("models_proved", classification.models_proved, tables.models, &json);
  json["excluded"] = Excluded(decisive, tables);
  json["excluded_count"] =
      static_cast<int64_t>(classification.excluded.size()) + classification.excluded_elsewhere;
  json["facets"] = Facets(classification);
  json["cuts"] = Words(classification.cuts);
  json["label"] = Text(classification.label);
  json["contract"] = Name(value.contract);
  json["rests_on_likelihood"] = classification.rests_on_likelihood;
  json["models_tried"] = classification.models_tried;
  if (!value.bits.empty()) json["bits"] = value.bits;
  if (!value.part.empty()) json["part"] = Text(value.part);
  json["fits"] = classification.fits;
  if (!classification.floors.empty()) json["floors"] = classification.floors;
  // What a contract that is met says nothing of, however it was summed.
  if (value.contract == ContractVerdict::kConforms && !classification.as_exact.empty())
    json["as_exact"] = Words(classification.as_exact);
  if (!classification.says.empty()) json["says"] = Texts(classification.says);
  for (const auto& region : classification.regions)
    json["regions"].push_back({{"where", Text(region.where)}, {"label", Text(region.label)}});
  if (!classification.notes.empty()) json["notes"] = Texts(classification.notes);
  return json;
}

Json Values(const CaseResult& result, const DecisiveExclusions& decisive, Tables& tables) {
  Json object = Json::object();
  for (const auto& [name, value] : result.ValuesInOrder())
    object[Utf8Safe(name)] = Value(*value, decisive.Of(result, name), tables);
  return object;
}

/// Observed texts; peak_bytes is a number.
Json Observations(const std::map<std::string, std::string>& observations) {
  Json object = Json::object();
  for (const auto& [name, text] : observations) {
    const auto number = name == "peak_bytes" ? WholeNumber<int64_t>(text) : std::nullopt;
    object[Utf8Safe(name)] = number ? Json(*number) : Text(text);
  }
  return object;
}

/// Equal ones once, with their number: a graph converts a dozen operands in the same way.
Json Casts(const std::vector<Cast>& casts) {
  std::vector<std::pair<Json, int64_t>> counted;
  for (const Cast& cast : casts) {
    Json one = {{"from", Text(cast.from)},    {"to", Text(cast.to)},       {"shape", cast.shape},
                {"bytes", cast.bytes},        {"under", Text(cast.under)}, {"stage", Text(cast.stage)},
                {"redundant", cast.redundant}};
    const auto same = std::ranges::find_if(counted, [&](const auto& entry) { return entry.first == one; });
    if (same == counted.end()) {
      counted.emplace_back(std::move(one), 1);
    } else {
      ++same->second;
    }
  }
  Json list = Json::array();
  for (auto& [cast, count] : counted) {
    if (count > 1) cast["count"] = count;
    list.push_back(std::move(cast));
  }
  return list;
}

/// What follows from dtypes and shapes alone; times are volatile.
Json CastCosts(const std::vector<CastCost>& costs) {
  Json list = Json::array();
  for (const CastCost& cost : costs) {
    list.push_back({{"stage", Text(cost.stage)},
                    {"casts", cost.casts},
                    {"in_kernels", cost.in_kernels},
                    {"moved_bytes", cost.moved_bytes},
                    {"redundant_pairs", cost.redundant_pairs},
                    {"redundant_bytes", cost.redundant_bytes},
                    {"extra_alive_bytes", cost.extra_alive_bytes}});
  }
  return list;
}

Json CastShares(const std::vector<CastCost>& costs) {
  Json list = Json::array();
  for (const CastCost& cost : costs) {
    for (const CastCost::Share& share : cost.shares) {
      list.push_back({{"stage", Text(cost.stage)},
                      {"under", Text(share.under)},
                      {"before", Text(share.before)},
                      {"casts_us", share.casts_us},
                      {"op_us", share.op_us}});
    }
  }
  return list;
}

/// Each step of the opened program by itself: how it read what other steps computed, and what it did.
Json Steps(const OpenedRun& opened) {
  Json list = Json::array();
  for (const auto& step : opened.steps) {
    const Classification& classification = step.result.classification;
    Json reads = Json::array();
    for (const auto& [operand, words] : classification.reads)
      reads.push_back({{"operand", Text(operand)}, {"as", Texts(words)}});
    Json facets = Facets(classification);
    facets["cuts"] = Words(classification.cuts);
    list.push_back({{"value", Text(step.value)},
                    {"op", Text(step.op)},
                    {"dtype", Name(step.result.dtype)},
                    {"reads", std::move(reads)},
                    {"classification",
                     {{"kind", Name(classification.kind)},
                      {"fits", classification.fits},
                      {"likely", classification.rests_on_likelihood},
                      {"label", Text(classification.label)},
                      {"facets", std::move(facets)},
                      {"max_ulp", Number(classification.max_ulp)},
                      {"says", Texts(classification.says)}}}});
  }
  return list;
}

Json ResultJson(const CaseResult& result, const DecisiveExclusions& decisive, Tables& tables) {
  Json json = {{"id", Text(result.id)},
               {"backend", Text(result.backend)},
               {"status", Name(result.status)},
               {"reason", Text(result.reason)},
               {"demanded", result.demanded}};
  if (result.status != Status::kNotRun) {  // what was never begun has no outcome
    json["outcome"] = {{"kind", Name(result.outcome.kind)}};
    if (!result.outcome.error_class.empty()) json["outcome"]["class"] = Text(result.outcome.error_class);
    if (!result.outcome.text.empty()) json["outcome"]["text"] = Text(result.outcome.text);
  }
  json["knobs"] = {{"asked", TextMap(result.knobs_asked)}, {"effective", TextMap(result.knobs_effective)}};
  json["values"] = Values(result, decisive, tables);
  json["observations"] = Observations(result.observations);
  json["casts"] = Casts(result.casts);
  if (!result.cast_costs.empty()) json["cast_costs"] = CastCosts(result.cast_costs);
  if (!result.notes.empty()) json["notes"] = Texts(result.notes);
  for (const ProvedOn& input : result.proved_on) {
    json["proved_on"].push_back({{"input", Text(input.name)}});
    if (!input.left_out.empty()) json["proved_on"].back()["left_out"] = Text(input.left_out);
  }
  if (result.opened) {
    json["opened"] = {{"kept", result.opened->left_out.empty() && result.opened->changed.empty()},
                      {"changed", Texts(result.opened->changed)},
                      {"left_out", Text(result.opened->left_out)}};
    json["steps"] = Steps(*result.opened);
  }
  json["repro"] = Text(result.repro);
  return json;
}

Json DivergenceJson(const Divergence& divergence) {
  Json groups = Json::array();
  for (const auto& group : divergence.backends) groups.push_back(Texts(group));
  return {{"case", Text(divergence.case_id)},
          {"kind", Name(divergence.kind)},
          {"backends", groups},
          {"value", Text(divergence.value)},
          {"also", Texts(divergence.also)},
          {"basis", Text(divergence.basis)},
          {"stages", Texts(divergence.stages)},
          {"sentence", Text(divergence.sentence)}};
}

Json KnobJson(const KnobEffect& effect) {
  Json json = {{"backend", Text(effect.backend)},
               {"knob", Text(effect.knob)},
               {"asked", Text(effect.asked)},
               {"effective", Texts(effect.effective)},
               {"read_back", Name(effect.read_back)},
               {"base", Text(effect.base)},
               {"base_effective", Texts(effect.base_effective)},
               {"effect", Name(effect.effect)},
               {"cases", effect.cases},
               {"compared", effect.compared},
               {"acted", effect.acted}};
  if (!effect.first_case.empty()) json["case"] = Text(effect.first_case);
  if (!effect.what.empty()) json["what"] = Text(effect.what);
  return json;
}

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
  return {{"seed", report.seed},
          {"complete", report.complete},
          {"versions", versions},
          {"environment", environment},
          {"not_installed", TextMap(report.not_installed)},
          {"ulpscope", std::string(Version())}};
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

/// One entry a line: small, and two runs can be compared by their lines. Each is text before the next one is made: as objects, all
/// results of a long run are ten times their text.
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

std::string WriteJson(const RunReport& report) {
  const DecisiveExclusions decisive(report);
  Tables tables;
  std::string text = "{\n\"schema\": \"ulpscope.report/3\",\n";
  text += "\"run\": " + Run(report).dump(2) + ",\n\"counts\": " + Counts(report).dump(2) + ",\n";
  AddLines(
      "results", report.results,
      [&](const CaseResult& result) { return ResultJson(result, decisive, tables).dump(); }, &text);
  AddLines(
      "models", tables.models.names(), [](const std::string& name) { return Json(name).dump(); }, &text);
  AddLines(
      "exclusions", tables.exclusions.texts(), [](const std::string* one) { return *one; }, &text);
  AddLines(
      "divergences", report.divergences, [](const auto& one) { return DivergenceJson(one).dump(); }, &text);
  AddLines(
      "knobs", report.knobs, [](const auto& one) { return KnobJson(one).dump(); }, &text);
  text += "\"volatile\": " + Volatile(report).dump() + "\n}\n";
  return text;
}

}  // namespace ulpscope
