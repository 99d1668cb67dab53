// Results of a run as JSON: values, steps, casts, births.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "reports/births.h"
#include "reports/decisive.h"
#include "reports/json_parts.h"
#include "reports/places.h"
#include "reports/text_safe.h"

namespace ulpscope::json_parts {

namespace {

/// Longer lists are cut off: their length says as much, and the run folder has them whole.
constexpr size_t kMostListed = 64;

void AddModels(const char* key, const std::vector<PrecisionModel>& models, ModelTable& table, Json* value) {
  Json list = Json::array();
  for (size_t i = 0; i < std::min(models.size(), kMostListed); ++i) list.push_back(table.Index(models[i]));
  (*value)[key] = std::move(list);
  if (models.size() > kMostListed) (*value)[std::string(key) + "_count"] = models.size();
}

Json Facets(const Classification& classification) {
  Json facets = Json::object();
  facets["in"] = Words(WordsOf(classification.facets_in, InWord));
  const auto words = WordsOf(classification.facets);
  for (const char* facet : {"prod", "acc", "mid", "out"}) facets[facet] = Texts(words.at(facet));
  return facets;
}

Json Kinds(const std::vector<Remark>& remarks) {
  Json kinds = Json::array();
  for (const Remark& remark : remarks) kinds.push_back(Name(remark.kind));
  return kinds;
}

/// Adds texts and their kinds under two keys; nothing if there are none.
void AddRemarks(const std::string& key, const std::vector<Remark>& remarks, Json* json) {
  if (remarks.empty()) return;
  (*json)[key] = Texts(TextsOf(remarks));
  (*json)[key + "_kinds"] = Kinds(remarks);
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
  json["cuts"] = Words(WordsOf(classification.cuts, MidWord));
  json["label"] = Text(classification.label);
  json["contract"] = Name(value.contract);
  json["rests_on_likelihood"] = classification.rests_on_likelihood;
  json["models_tried"] = classification.models_tried;
  if (!value.bits.empty()) json["bits"] = value.bits;
  if (!value.part.empty()) json["part"] = Text(value.part);
  json["fits"] = classification.fits;
  if (classification.states_error) json["states_error"] = true;
  if (!classification.floors.empty()) json["floors"] = classification.floors;
  // Alternatives that give the same bits, which a met contract therefore does not distinguish.
  if (value.contract == ContractVerdict::kConforms && !classification.as_exact.Empty())
    json["as_exact"] = Words(WordsOf(classification.as_exact));
  AddRemarks("says", classification.says, &json);
  for (const auto& region : classification.regions)
    json["regions"].push_back({{"where", Text(region.where)}, {"label", Text(region.label)}});
  AddRemarks("notes", classification.notes, &json);
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
  std::unordered_map<std::string, size_t> places;
  for (const Cast& cast : casts) {
    Json one = {{"from", Text(cast.from)},    {"to", Text(cast.to)},       {"shape", cast.shape},
                {"bytes", cast.bytes},        {"under", Text(cast.under)}, {"stage", Text(cast.stage)},
                {"redundant", cast.redundant}};
    const auto [same, is_new] = places.try_emplace(one.dump(), counted.size());
    if (is_new) {
      counted.emplace_back(std::move(one), 1);
    } else {
      ++counted[same->second].second;
    }
  }
  Json list = Json::array();
  for (auto& [cast, count] : counted) {
    if (count > 1) cast["count"] = count;
    list.push_back(std::move(cast));
  }
  return list;
}

/// Costs derived from dtypes and shapes alone; times are volatile.
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

}  // namespace

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

Json OriginJson(const StepOrigin& at) {
  return {{"module", Text(at.module)}, {"file", Text(at.file)}, {"line", at.line}};
}

/// Adds the origin of the step that gives `value`, if it is known.
void AddOrigin(const RunReport& report, const std::string& case_id, const std::string& value, Json* json) {
  if (const StepOrigin* at = OriginOf(report, case_id, value)) (*json)["at"] = OriginJson(*at);
}

namespace {

/// Each step of the instrumented program by itself: how it read the results of other steps, and its behaviour.
Json Steps(const RunReport& report, const std::string& id, const OpenedRun& opened) {
  Json list = Json::array();
  for (const auto& step : opened.steps) {
    const Classification& classification = step.result.classification;
    Json reads = Json::array();
    for (const auto& [operand, words] : classification.reads)
      reads.push_back({{"operand", Text(operand)}, {"as", Texts(words)}});
    Json facets = Facets(classification);
    facets["cuts"] = Words(WordsOf(classification.cuts, MidWord));
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
                      {"says", Texts(TextsOf(classification.says))},
                      {"says_kinds", Kinds(classification.says)}}}});
    AddOrigin(report, id, step.value, &list.back());
  }
  return list;
}

Json ElementJson(const SpecialElement& element) {
  return {{"value", Text(element.value)},
          {"element", element.at},
          {"observed", Number(element.observed)},
          {"exact", element.exact ? Number(*element.exact) : Json(nullptr)}};
}

Json BirthJson(const RunReport& report, const std::string& case_id, const NonFiniteBirth& birth) {
  Json operands = Json::array(), spread = Json::array();
  for (const double operand : birth.operands) operands.push_back(Number(operand));
  for (const auto& each : birth.spread)
    spread.push_back({{"step", Text(each.step)}, {"elements", each.count}, {"of", each.elements}});
  Json json = {{"what", birth.what},
               {"values", Texts(birth.values)},
               {"step", birth.op.empty() ? Json("") : Text(birth.born.value)},
               {"op", Text(birth.op)},
               {"element", birth.born.at},
               {"observed", Number(birth.born.observed)},
               {"operands", std::move(operands)},
               {"exact", birth.born.exact ? Number(*birth.born.exact) : Json(nullptr)},
               {"dtype", Name(birth.dtype)},
               {"spread", std::move(spread)}};
  if (birth.end) json["end"] = ElementJson(*birth.end);
  AddOrigin(report, case_id, birth.born.value, &json);
  return json;
}

}  // namespace

Json SharedBirthJson(const RunReport& report, const SharedBirth& shared) {
  Json json = {{"case", Text(shared.case_id)},
               {"backends", Texts(shared.backends)},
               {"everywhere", shared.everywhere},
               {"diverges", shared.diverges}};
  json.update(BirthJson(report, shared.case_id, *shared.birth));
  json["sentence"] = Text(BirthSentence(report, shared));
  return json;
}

Json ResultJson(const RunReport& report, const CaseResult& result, const DecisiveExclusions& decisive,
                Tables& tables) {
  Json json = {{"id", Text(result.id)},
               {"backend", Text(result.backend)},
               {"status", Name(result.status)},
               {"reason", Text(result.reason)},
               {"demanded", result.demanded}};
  if (result.status != Status::kNotRun) {  // a result that was never begun has no outcome
    json["outcome"] = {{"kind", Name(result.outcome.kind)}};
    if (!result.outcome.error_class.empty()) json["outcome"]["class"] = Text(result.outcome.error_class);
    if (!result.outcome.text.empty()) json["outcome"]["text"] = Text(result.outcome.text);
  }
  json["knobs"] = {{"asked", TextMap(result.knobs_asked)}, {"effective", TextMap(result.knobs_effective)}};
  json["values"] = Values(result, decisive, tables);
  for (const auto& [value, exclusion] : result.cited)
    json["cited"][Utf8Safe(value)] = tables.exclusions.Index(exclusion, tables.models);
  json["observations"] = Observations(result.observations);
  json["casts"] = Casts(result.casts);
  if (!result.cast_costs.empty()) json["cast_costs"] = CastCosts(result.cast_costs);
  if (!result.notes.empty()) json["notes"] = Texts(result.notes);
  for (const NonFiniteBirth& birth : result.not_finite)
    json["not_finite"].push_back(BirthJson(report, result.id, birth));
  for (const ProvedOn& input : result.proved_on) {
    json["proved_on"].push_back({{"input", Text(input.name)}});
    if (!input.left_out.empty()) json["proved_on"].back()["left_out"] = Text(input.left_out);
  }
  if (result.opened) {
    json["opened"] = {{"kept", result.opened->left_out.empty() && result.opened->changed.empty()},
                      {"changed", Texts(result.opened->changed)},
                      {"left_out", Text(result.opened->left_out)}};
    json["steps"] = Steps(report, result.id, *result.opened);
  }
  json["repro"] = Text(result.repro);
  return json;
}

}  // namespace ulpscope::json_parts
