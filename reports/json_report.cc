// RunReport as JSON.
#include "reports/json_report.h"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/base/build_info.h"
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

Json NumberMap(const std::map<std::string, double>& entries) {
  Json object = Json::object();
  for (const auto& [key, number] : entries) object[Utf8Safe(key)] = Number(number);
  return object;
}

Json Words(const std::map<std::string, std::vector<std::string>>& entries) {
  Json object = Json::object();
  for (const auto& [key, words] : entries) object[Utf8Safe(key)] = Texts(words);
  return object;
}

Json Models(const std::vector<PrecisionModel>& models) {
  Json list = Json::array();
  for (const auto& model : models) list.push_back(model.Name());
  return list;
}

Json Facets(const Classification& classification) {
  Json facets = Json::object();
  facets["in"] = Words(classification.facets_in);
  for (const char* facet : {"prod", "acc", "mid", "out"}) {
    const auto words = classification.facets.find(facet);
    facets[facet] = words == classification.facets.end() ? Json::array() : Texts(words->second);
  }
  return facets;
}

Json Excluded(const std::vector<Exclusion>& exclusions) {
  Json list = Json::array();
  for (const Exclusion& exclusion : exclusions) {
    list.push_back({{"model", exclusion.model.Name()},
                    {"element", exclusion.element},
                    {"why", Text(exclusion.why)},
                    {"observed", Number(exclusion.observed)},
                    {"reference", Number(exclusion.reference)},
                    {"low", Number(exclusion.low)},
                    {"high", Number(exclusion.high)}});
  }
  return list;
}

Json Value(const ValueResult& value) {
  const Classification& classification = value.classification;
  const bool measured = classification.kind != ClassificationKind::kNoReference &&
                        classification.kind != ClassificationKind::kNotFloating;
  Json json = {{"dtype", Name(value.dtype)},
               {"shape", value.shape},
               {"elements", classification.elements},
               {"checked", classification.checked}};
  if (measured) {
    json["max_ulp"] = Number(classification.max_ulp);
    json["max_abs"] = Number(classification.max_abs);
  }
  json["classification"] = Name(classification.kind);
  json["models"] = Models(classification.models);
  json["models_proved"] = Models(classification.models_proved);
  json["excluded"] = Excluded(classification.excluded);
  json["facets"] = Facets(classification);
  json["cuts"] = Words(classification.cuts);
  json["label"] = Text(classification.label);
  json["contract"] = Name(value.contract);
  json["rests_on_likelihood"] = classification.rests_on_likelihood;
  json["models_tried"] = classification.models_tried;
  if (!value.part.empty()) json["part"] = Text(value.part);
  json["fits"] = classification.fits;
  if (!classification.floors.empty()) json["floors"] = classification.floors;
  if (!classification.says.empty()) json["says"] = Texts(classification.says);
  for (const auto& region : classification.regions)
    json["regions"].push_back({{"where", Text(region.where)}, {"label", Text(region.label)}});
  if (!classification.notes.empty()) json["notes"] = Texts(classification.notes);
  return json;
}

Json Values(const CaseResult& result) {
  Json object = Json::object();
  for (const auto& name : result.value_order) {
    if (const auto value = result.values.find(name); value != result.values.end())
      object[Utf8Safe(name)] = Value(value->second);
  }
  return object;
}

/// Observed texts; peak_bytes is a number.
Json Observations(const std::map<std::string, std::string>& observations) {
  Json object = Json::object();
  for (const auto& [name, text] : observations) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_number = name == "peak_bytes" && error == std::errc() && end == text.data() + text.size();
    object[Utf8Safe(name)] = is_number ? Json(number) : Text(text);
  }
  return object;
}

Json Casts(const std::vector<Cast>& casts) {
  Json list = Json::array();
  for (const Cast& cast : casts) {
    list.push_back({{"from", Text(cast.from)},
                    {"to", Text(cast.to)},
                    {"shape", cast.shape},
                    {"bytes", cast.bytes},
                    {"under", Text(cast.under)},
                    {"stage", Text(cast.stage)},
                    {"redundant", cast.redundant}});
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

Json ResultJson(const CaseResult& result) {
  Json json = {{"id", Text(result.id)},
               {"backend", Text(result.backend)},
               {"status", Name(result.status)},
               {"reason", Text(result.reason)}};
  if (result.status != Status::kNotRun) {  // what was never begun has no outcome
    json["outcome"] = {{"kind", Name(result.outcome.kind)},
                       {"class", Text(result.outcome.error_class)},
                       {"text", Text(result.outcome.text)}};
  }
  json["knobs"] = {{"asked", TextMap(result.knobs_asked)}, {"effective", TextMap(result.knobs_effective)}};
  json["values"] = Values(result);
  json["observations"] = Observations(result.observations);
  json["casts"] = Casts(result.casts);
  if (!result.cast_costs.empty()) json["cast_costs"] = CastCosts(result.cast_costs);
  if (!result.notes.empty()) json["notes"] = Texts(result.notes);
  for (const ProvedOn& input : result.proved_on) {
    json["proved_on"].push_back({{"input", Text(input.name)}});
    if (!input.left_out.empty()) json["proved_on"].back()["left_out"] = Text(input.left_out);
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
    if (!result.durations_ms.empty()) cases[cell] = NumberMap(result.durations_ms);
    if (Json shares = CastShares(result.cast_costs); !shares.empty()) casts[cell] = std::move(shares);
  }
  Json json = {{"id", Text(report.id)},
               {"started", Text(report.started)},
               {"durations", {{"run_s", NumberMap(report.durations_s)}, {"cases_ms", cases}}},
               {"casts_us", casts}};
  if (!report.oracle_engine.empty()) {
    json["oracle"] = {{"engine", Text(report.oracle_engine)},
                      {"elements_fast", report.oracle_counts.fast},
                      {"elements_compared", report.oracle_counts.compared},
                      {"elements_boost", report.oracle_counts.boost}};
  }
  return json;
}

}  // namespace

std::string WriteJson(const RunReport& report) {
  Json results = Json::array();
  for (const auto& result : report.results) results.push_back(ResultJson(result));
  Json divergences = Json::array();
  for (const auto& divergence : report.divergences) divergences.push_back(DivergenceJson(divergence));
  Json knobs = Json::array();
  for (const auto& effect : report.knobs) knobs.push_back(KnobJson(effect));
  const Json json = {{"schema", "ulpscope.report/1"},
                     {"run", Run(report)},
                     {"volatile", Volatile(report)},
                     {"counts", Counts(report)},
                     {"results", results},
                     {"divergences", divergences},
                     {"knobs", knobs}};
  return json.dump(2) + "\n";
}

}  // namespace ulpscope
