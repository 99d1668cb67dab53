// Origins of steps, as findings name them.
#include "reports/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"

namespace ulpscope {
namespace {

/// The largest share, without its sign, of an entry of that step in the case's ledgers.
double ShareOf(const RunReport& report, const std::string& case_id, const std::string& step) {
  double share = 0;
  for (const Ledger& ledger : report.ledgers) {
    if (ledger.case_id != case_id) continue;
    for (const LedgerEntry& entry : ledger.entries) {
      if (entry.step == step) share = std::max(share, std::fabs(entry.share));
    }
  }
  return share;
}

std::vector<SourcePlace> SourcesOf(const RunReport& report, const std::string& case_id,
                                   const std::vector<std::string>& values) {
  std::vector<SourcePlace> places;
  const CasePlace* of_case = Lookup(report.places, case_id);
  if (of_case == nullptr) return places;
  std::map<StepOrigin, size_t> number;
  for (const std::string& value : values) {
    const SourceStep* step = Lookup(of_case->steps, value);
    if (step == nullptr) continue;
    const auto [known, is_new] = number.try_emplace(step->at.OfAnyLayer(), places.size());
    if (is_new) places.emplace_back();
    SourcePlace& place = places[known->second];
    if (is_new) {
      place.at = step->at;
      place.layers = step->layers;
    }
    if (Contains(place.values, value)) continue;
    place.values.push_back(value);
    if (!Contains(place.modules, step->at.module)) place.modules.push_back(step->at.module);
    if (const double share = ShareOf(report, case_id, value); share > place.share) {
      place.share = share;
      place.at = step->at;
    }
  }
  std::ranges::stable_sort(places,
                           [](const SourcePlace& a, const SourcePlace& b) { return a.share > b.share; });
  return places;
}

void AddValues(const Divergence& divergence, std::vector<std::string>* values) {
  values->push_back(divergence.value);
  values->insert(values->end(), divergence.also.begin(), divergence.also.end());
}

}  // namespace

std::vector<SourcePlace> SourcePlacesOf(const RunReport& report, const Divergence& divergence) {
  std::vector<std::string> values;
  AddValues(divergence, &values);
  return SourcesOf(report, divergence.case_id, values);
}

std::vector<SourcePlace> SourcePlacesOf(const RunReport& report, const WeighedDivergence& finding) {
  std::vector<std::string> values;
  AddValues(*finding.divergence, &values);
  for (const WeighedDivergence& each : finding.likewise) AddValues(*each.divergence, &values);
  return SourcesOf(report, finding.divergence->case_id, values);
}

std::string PlaceText(const SourcePlace& place) {
  if (place.layers < 2) return place.at.Text();
  const bool several = place.modules.size() > 1;
  std::string text = fmt::format("{} in {} of {} layers", (several ? place.at.OfAnyLayer() : place.at).Text(),
                                 place.modules.size(), place.layers);
  if (several) text += fmt::format(", {} in {}", place.share > 0 ? "largest" : "first", place.at.module);
  return text;
}

std::vector<std::string> PlaceTexts(const std::vector<SourcePlace>& places) {
  return Mapped(places, PlaceText);
}

std::string PlacesText(const std::vector<SourcePlace>& places) {
  constexpr size_t kMostPlaces = 3;
  if (places.empty()) return "";
  std::vector<std::string> texts = PlaceTexts(places);
  if (texts.size() > kMostPlaces) {
    const size_t more = texts.size() - (kMostPlaces - 1);
    texts.resize(kMostPlaces - 1);
    texts.push_back("and " + Counted(more, "more line"));
  }
  return "at " + Join(texts, "; ");
}

std::string WithPlaces(std::string sentence, const std::vector<SourcePlace>& places) {
  const std::string text = PlacesText(places);
  return text.empty() ? sentence : sentence + " A" + text.substr(1) + ".";
}

const StepOrigin* OriginOf(const RunReport& report, const std::string& case_id, const std::string& value) {
  const CasePlace* of_case = Lookup(report.places, case_id);
  const SourceStep* step = of_case == nullptr ? nullptr : Lookup(of_case->steps, value);
  return step == nullptr ? nullptr : &step->at;
}

SourceLine SourceLineOf(const RunReport& report, const std::string& case_id, const std::string& value) {
  const StepOrigin* origin = OriginOf(report, case_id, value);
  if (origin != nullptr && !origin->file.empty()) return {.file = origin->file, .line = origin->line};
  const CasePlace* of_case = Lookup(report.places, case_id);
  if (of_case == nullptr || of_case->at.line == 0) return {};
  const int* line = Lookup(of_case->lines, value);
  return {.file = of_case->at.file, .line = line == nullptr ? of_case->at.line : *line};
}

}  // namespace ulpscope
