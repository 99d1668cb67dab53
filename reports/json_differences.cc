// Differences, their ledgers, and the effects of knobs, as JSON.
#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "reports/json_parts.h"
#include "reports/ledger.h"
#include "reports/places.h"
#include "reports/text_safe.h"

namespace ulpscope::json_parts {

namespace {

Json SizeJson(const DifferenceSize& size) {
  return {{"elements", size.most},
          {"elements_fewest", size.fewest},
          {"of", size.elements},
          {"max_ulp", Number(size.largest_ulp)},
          {"max_abs", Number(size.largest)},
          {"scale", Number(size.scale)}};
}

const Divergence& FirstOf(const Divergence& divergence) { return divergence; }
const Divergence& FirstOf(const WeighedDivergence& finding) { return *finding.divergence; }

/// `at`: for the first value in which the two differ; `places`: for all of them, repeated layers together.
template <class Finding>
void AddPlaces(const RunReport& report, const Finding& finding, Json* json) {
  const auto places = SourcePlacesOf(report, finding);
  if (places.empty()) return;
  const Divergence& first = FirstOf(finding);
  AddOrigin(report, first.case_id, first.value, json);
  (*json)["places"] = Texts(PlaceTexts(places));
}

}  // namespace

Json DivergenceJson(const RunReport& report, const Divergence& divergence) {
  Json groups = Json::array();
  for (const auto& group : divergence.backends) groups.push_back(Texts(group));
  Json json = {{"case", Text(divergence.case_id)},
               {"kind", Name(divergence.kind)},
               {"backends", groups},
               {"value", Text(divergence.value)},
               {"also", Texts(divergence.also)},
               {"basis", Text(divergence.basis)},
               {"stages", Texts(divergence.stages)},
               {"size", SizeJson(divergence.size)},
               {"bound", Number(divergence.bound)},
               {"sentence", Text(divergence.sentence)}};
  AddPlaces(report, divergence, &json);
  return json;
}

Json FindingJson(const RunReport& report, const WeighedDivergence& finding) {
  const Divergence& first = *finding.divergence;
  Json groups = Json::array(), values = Json::array();
  for (const auto& group : first.backends) groups.push_back(Texts(group));
  const auto add = [&](const Divergence& each) {
    values.push_back(Text(each.value));
    for (const std::string& also : each.also) values.push_back(Text(also));
  };
  add(first);
  for (const WeighedDivergence& each : finding.likewise) add(*each.divergence);
  Json json = {{"case", Text(first.case_id)},
               {"kind", Name(first.kind)},
               {"backends", groups},
               {"values", values},
               {"also", Texts(first.also)},
               {"moves_nothing", finding.weight.moves_nothing},
               {"sentence", Text(first.sentence + finding.LikewiseText())}};
  if (finding.weight.ledger != nullptr) {
    json["of"] = Text(finding.weight.ledger->value);
    json["share"] = Number(finding.weight.share);
  }
  AddPlaces(report, finding, &json);
  return json;
}

Json AccountJson(const AccountEntry& entry) {
  Json groups = Json::array();
  for (const auto& group : entry.backends) groups.push_back(Texts(group));
  return {{"case", Text(entry.case_id)},
          {"value", Text(entry.value)},
          {"backends", groups},
          {"size", SizeJson(entry.size)},
          {"by", Texts(entry.by)}};
}

namespace {

Json ErrorJson(const Ledger& ledger, const std::string& backend, const ProgramError& error) {
  return {{"backend", Text(backend)},
          {"rms", Number(error.rms)},
          {"median", Number(error.median)},
          {"max_abs", Number(error.largest)},
          {"max_ulp", Number(error.largest_ulp)},
          {"element", ulpscope::Coordinates(error.worst, ledger.shape)},
          {"observed", Number(error.observed)},
          {"exact", Number(error.exact)}};
}

Json NearnessJson(const Ledger& ledger) {
  const Nearness& nearness = *ledger.nearness;
  const std::string &first = ledger.backends.at(0).front(), &second = ledger.backends.at(1).front();
  using Side = Nearness::Side;
  return {{"elements", nearness.elements},
          {"scale", Number(nearness.scale)},
          {"nearer",
           nearness.nearer == Side::kNeither ? "" : Text(nearness.nearer == Side::kFirst ? first : second)},
          {"errors", {ErrorJson(ledger, first, nearness.first), ErrorJson(ledger, second, nearness.second)}}};
}

}  // namespace

namespace {

/// Shares add up to 1 over the entries of a ledger, exactly but for the last bits of the sum.
Json EntriesJson(const Ledger& ledger) {
  Json entries = Json::array();
  for (const LedgerEntry& entry : ledger.entries) {
    Json causes = Json::array();
    for (const LedgerCause& cause : entry.causes)
      causes.push_back({{"backend", Text(cause.backend)},
                        {"kind", Name(cause.kind)},
                        {"explained", cause.is_explained},
                        {"sentence", Text(cause.sentence)},
                        {"does", Text(cause.does)},
                        {"carrier_does", Text(cause.carrier_does)}});
    entries.push_back({{"step", Text(entry.step)},
                       {"share", Number(entry.share)},
                       {"elements", entry.moved},
                       {"rms", Number(entry.rms)},
                       {"max_abs", Number(entry.largest)},
                       {"explained", entry.IsExplained()},
                       {"causes", std::move(causes)}});
    if (!entry.at.IsEmpty()) {
      entries.back()["at"] = OriginJson(entry.at);
      entries.back()["layers"] = entry.layers;
    }
  }
  return entries;
}

}  // namespace

Json LedgerJson(const Ledger& ledger) {
  Json groups = Json::array();
  for (const auto& group : ledger.backends) groups.push_back(Texts(group));
  Json causes = Json::array();
  for (const FoldedCause& folded : FoldCauses(ledger)) {
    const LedgerEntry& first = *folded.entries.front();
    std::string sentence;
    for (const LedgerCause& cause : first.causes) sentence += (sentence.empty() ? "" : " ") + cause.sentence;
    causes.push_back({{"share", Number(folded.share)},
                      {"steps", folded.entries.size()},
                      {"explained", first.IsExplained()},
                      {"sentence", Text(sentence)},
                      {"places", Texts(PlaceTexts(folded))}});
  }
  Json remedies = Json::array();
  for (const TriedRemedy& tried : ledger.remedies) {
    remedies.push_back({{"backend", Text(tried.backend)},
                        {"setting", Text(tried.setting)},
                        {"source", Text(tried.source)},
                        {"elements", tried.differing}});
  }
  Json json = {{"case", Text(ledger.case_id)},
               {"value", Text(ledger.value)},
               {"backends", groups},
               {"carrier", Text(ledger.carrier)},
               {"left_out", Text(ledger.left_out)},
               {"elements", ledger.differing},
               {"of", ledger.elements},
               {"rms", Number(ledger.rms)},
               {"atol", Number(ledger.atol)},
               {"rtol", Number(ledger.rtol)},
               {"measure", ledger.counted ? "elements" : "sums"},
               {"steps", ledger.steps},
               {"explained", Number(ledger.Explained())},
               {"order_only", Number(ledger.OrderOnly())},
               {"causes", std::move(causes)},
               {"entries", EntriesJson(ledger)},
               {"remedies", std::move(remedies)}};
  if (ledger.nearness) json["nearness"] = NearnessJson(ledger);
  return json;
}

/// Shares add up to 1 over the entries of a budget, exactly but for the last bits of the sum.
Json BudgetJson(const ErrorBudget& budget) {
  Json entries = Json::array();
  for (const BudgetEntry& entry : budget.entries) {
    entries.push_back({{"step", Text(entry.step)},
                       {"share", Number(entry.share)},
                       {"rms", Number(entry.rms)},
                       {"elements", entry.moved}});
    if (!entry.with.empty()) entries.back()["with"] = Texts(entry.with);
    if (entry.at.IsEmpty()) continue;
    entries.back()["at"] = OriginJson(entry.at);
    entries.back()["layers"] = entry.layers;
  }
  Json json = {{"case", Text(budget.case_id)},
               {"value", Text(budget.value)},
               {"backends", Texts(budget.backends)},
               {"left_out", Text(budget.left_out)},
               {"elements", budget.elements},
               {"of", budget.of},
               {"rms", Number(budget.rms)},
               {"precision", Number(budget.precision)},
               {"at_stored_values", budget.at_stored_values},
               {"steps", budget.steps},
               {"together", budget.together},
               {"entries", std::move(entries)}};
  if (budget.in_float32) {
    json["in_float32"] = {{"step", Text(budget.in_float32->step)},
                          {"before", Number(budget.in_float32->before)},
                          {"after", Number(budget.in_float32->after)},
                          {"lowers", budget.in_float32->lowers}};
  }
  return json;
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

}  // namespace ulpscope::json_parts
