// A classification as JSON, in both directions: this spells the typed values.
#include "harness/record/classification_json.h"

#include <optional>

#include "backends/sdk/wire.h"
#include "harness/base/find.h"
#include "harness/record/json_fields.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

using nlohmann::json;

json ToJson(const std::map<std::string, RoundSpec>& roundings, std::string (*word)(const RoundSpec&)) {
  json object = json::object();
  for (const auto& [name, spec] : roundings) object[name] = word(spec);
  return object;
}

json ToJson(const PrecisionModel& model) {
  return {{"in", ToJson(model.in, InWord)}, {"prod", ProdWord(model.prod)},
          {"acc", AccWord(model.acc)},      {"mid", MidWord(model.mid)},
          {"out", OutWord(model.out)},      {"cuts", ToJson(model.cuts, MidWord)}};
}

/// The value of `word` for the facet `key`; an unknown word is an error of the record.
template <class Spec>
Spec Said(JsonFields& fields, std::string_view key, const std::string& word,
          std::optional<Spec> (*parse)(std::string_view)) {
  const auto spec = parse(word);
  if (!spec) fields.Complain(key, "a word of this facet");
  return spec.value_or(Spec{});
}

std::map<std::string, RoundSpec> RoundingsFromJson(JsonFields& fields, std::string_view key,
                                                   std::optional<RoundSpec> (*parse)(std::string_view)) {
  std::map<std::string, RoundSpec> roundings;
  for (const auto& [name, word] : fields.TextMap(key)) roundings[name] = Said(fields, key, word, parse);
  return roundings;
}

PrecisionModel ModelFromJson(const json& object, std::string& error) {
  JsonFields fields(object, error);
  return {.in = RoundingsFromJson(fields, "in", ParseIn),
          .prod = Said(fields, "prod", fields.Text("prod"), ParseProd),
          .acc = Said(fields, "acc", fields.Text("acc"), ParseAcc),
          .mid = Said(fields, "mid", fields.Text("mid"), ParseMid),
          .out = Said(fields, "out", fields.Text("out"), ParseOut),
          .cuts = RoundingsFromJson(fields, "cuts", ParseMid)};
}

json ToJson(const std::vector<PrecisionModel>& models) {
  json list = json::array();
  for (const auto& model : models) list.push_back(ToJson(model));
  return list;
}

/// The elements of the list `key`, read one by one.
template <class T>
std::vector<T> ListFrom(JsonFields& fields, std::string_view key, T (*read)(const json&, std::string&)) {
  std::vector<T> elements;
  const json* list = fields.Find(key);
  if (list == nullptr || !list->is_array()) {
    fields.Complain(key, "list");
    return elements;
  }
  for (const json& element : *list) elements.push_back(read(element, fields.error()));
  return elements;
}

json ToJson(const Exclusion& exclusion) {
  return {{"model", ToJson(exclusion.model)},
          {"element", exclusion.element},
          {"observed", sdk::FloatToJson(exclusion.observed)},
          {"reference", sdk::FloatToJson(exclusion.reference)},
          {"low", sdk::FloatToJson(exclusion.low)},
          {"high", sdk::FloatToJson(exclusion.high)},
          {"why", exclusion.why},
          {"further_input", exclusion.further_input},
          {"by", Name(exclusion.by)}};
}

/// Earlier records have none: "other".
ExcludedBy ExcludedByFrom(JsonFields& fields) {
  using enum ExcludedBy;
  const std::string word = fields.Text("by");
  for (const auto by : {kBounds, kStore, kOrders, kOther}) {
    if (word == Name(by)) return by;
  }
  if (!word.empty()) fields.Complain("by", "bounds, store, orders or other");
  return kOther;
}

json KindsOf(const std::vector<Remark>& remarks) {
  json kinds = json::array();
  for (const Remark& remark : remarks) kinds.push_back(Name(remark.kind));
  return kinds;
}

/// The texts of `key` with their kinds; old runs were recorded without kinds.
std::vector<Remark> RemarksFrom(JsonFields& fields, const std::string& key) {
  const std::vector<std::string> texts = fields.Texts(key), kinds = fields.Texts(key + "_kinds");
  std::vector<Remark> remarks;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto kind = i < kinds.size() ? ParseRemarkKind(kinds[i]) : RemarkKind::kOfEarlierRecord;
    if (!kind) fields.Complain(key + "_kinds", "kind of remark");
    remarks.push_back({kind.value_or(RemarkKind::kOfEarlierRecord), texts[i]});
  }
  return remarks;
}

/// Name -> its words as facets; an unknown word is an error of the record.
RoundingSets SetsFrom(JsonFields& fields, std::string_view key,
                      std::optional<RoundSpec> (*parse)(std::string_view)) {
  RoundingSets sets;
  for (const auto& [name, words] : fields.TextLists(key)) {
    std::vector<RoundSpec>& set = sets[name];
    for (const std::string& word : words) set.push_back(Said(fields, key, word, parse));
  }
  return sets;
}

template <class Spec>
std::vector<Spec> SpecsOf(JsonFields& fields, std::string_view key, const std::vector<std::string>& words,
                          std::optional<Spec> (*parse)(std::string_view)) {
  std::vector<Spec> specs;
  for (const std::string& word : words) specs.push_back(Said(fields, key, word, parse));
  return specs;
}

SurvivingFacets FacetsFrom(JsonFields& fields) {
  constexpr std::string_view kKey = "facets";
  const auto words = fields.TextLists(kKey);
  const auto of = [&](const char* facet) { return LookupOr(words, facet); };
  return {.prod = SpecsOf(fields, kKey, of("prod"), ParseProd),
          .acc = SpecsOf(fields, kKey, of("acc"), ParseAcc),
          .mid = SpecsOf(fields, kKey, of("mid"), ParseMid),
          .out = SpecsOf(fields, kKey, of("out"), ParseOut)};
}

AsExact AsExactFrom(JsonFields& fields) {
  constexpr std::string_view kKey = "as_exact";
  auto words = fields.TextLists(kKey);
  AsExact as_exact;
  const auto take_any = [&](const char* facet) {
    const bool any = words[facet] == std::vector<std::string>{"any"};
    if (any) words.erase(facet);
    return any;
  };
  as_exact.any_acc = take_any("acc");
  as_exact.any_prod = take_any("prod");
  as_exact.acc = SpecsOf(fields, kKey, words["acc"], ParseAcc);
  as_exact.acc_once = SpecsOf(fields, kKey, words["acc_once"], ParseAcc);
  as_exact.prod = SpecsOf(fields, kKey, words["prod"], ParseProd);
  return as_exact;
}

Exclusion ExclusionFromJson(const json& object, std::string& error) {
  JsonFields fields(object, error);
  fields.Require("model");
  if (!error.empty()) return {};
  return {.model = ModelFromJson(*fields.Find("model"), error),
          .element = fields.Integers("element"),
          .observed = fields.Number("observed"),
          .reference = fields.Number("reference"),
          .low = fields.Number("low"),
          .high = fields.Number("high"),
          .why = fields.Text("why"),
          .further_input = fields.Text("further_input"),
          .by = ExcludedByFrom(fields)};
}

Region RegionFromJson(const json& object, std::string& error) {
  JsonFields fields(object, error);
  return {.where = fields.Text("where"), .label = fields.Text("label")};
}

std::map<std::string, std::vector<int64_t>> ApartFrom(JsonFields& fields) {
  std::map<std::string, std::vector<int64_t>> apart;
  const json* object = fields.Find("apart");
  if (object == nullptr || !object->is_object()) {
    fields.Complain("apart", "object");
    return apart;
  }
  JsonFields positions(*object, fields.error());
  for (const auto& [model, list] : object->items()) apart[model] = positions.Integers(model);
  return apart;
}

std::map<std::string, int> FloorsFrom(JsonFields& fields) {
  std::map<std::string, int> floors;
  const json* object = fields.Find("floors");
  if (object == nullptr || !object->is_object()) {
    fields.Complain("floors", "object");
    return floors;
  }
  for (const auto& [facet, bits] : object->items()) {
    if (bits.is_number_integer()) floors[facet] = bits.get<int>();
  }
  return floors;
}

ClassificationKind KindFrom(JsonFields& fields) {
  const auto kind = ParseClassificationKind(fields.Text("kind"));
  if (!kind) fields.Complain("kind", "kind of classification");
  return kind.value_or(ClassificationKind::kNoReference);
}

/// "nothing" for runs that were recorded without it.
FormatOfWhat LabelledFrom(JsonFields& fields) {
  using enum FormatOfWhat;
  const std::string word = fields.Text("labelled");
  for (const auto what : {kNothing, kSums, kSteps}) {
    if (word == Name(what)) return what;
  }
  if (!word.empty()) fields.Complain("labelled", "nothing, sums or steps");
  return kNothing;
}

}  // namespace

json ClassificationToJson(const Classification& classification) {
  json excluded = json::array(), regions = json::array(), as_written = json::array();
  for (const double number : classification.as_written) as_written.push_back(sdk::FloatToJson(number));
  for (const auto& exclusion : classification.excluded) excluded.push_back(ToJson(exclusion));
  for (const auto& region : classification.regions)
    regions.push_back({{"where", region.where}, {"label", region.label}});
  return {{"kind", Name(classification.kind)},
          {"models", ToJson(classification.models)},
          {"models_proved", ToJson(classification.models_proved)},
          {"fits", classification.fits},
          {"floors", classification.floors},
          {"says", TextsOf(classification.says)},
          {"says_kinds", KindsOf(classification.says)},
          {"regions", regions},
          {"excluded", excluded},
          {"rests_on_likelihood", classification.rests_on_likelihood},
          {"elements", classification.elements},
          {"checked", classification.checked},
          {"max_ulp", sdk::FloatToJson(classification.max_ulp)},
          {"max_abs", sdk::FloatToJson(classification.max_abs)},
          {"beyond", sdk::FloatToJson(classification.beyond)},
          {"beyond_of", classification.beyond_of},
          {"within", sdk::FloatToJson(classification.within)},
          {"within_forms", classification.within_forms},
          {"within_sums", classification.within_sums},
          {"wrong_zeros", classification.wrong_zeros},
          {"models_tried", classification.models_tried},
          {"label", classification.label},
          {"labelled", Name(classification.labelled)},
          {"states_error", classification.states_error},
          {"notes", TextsOf(classification.notes)},
          {"notes_kinds", KindsOf(classification.notes)},
          {"facets", WordsOf(classification.facets)},
          {"facets_in", WordsOf(classification.facets_in, InWord)},
          {"cuts", WordsOf(classification.cuts, MidWord)},
          {"apart", classification.apart},
          {"as_exact", WordsOf(classification.as_exact)},
          {"reproduced", sdk::FloatToJson(classification.reproduced)},
          {"any_order", sdk::FloatToJson(classification.any_order)},
          {"piece", classification.piece},
          {"reads", classification.reads},
          {"together", classification.together},
          {"shown_by", classification.shown_by},
          {"as_written", as_written},
          {"shown_count", classification.shown_count},
          {"shown_of", classification.shown_of},
          {"on_the_way", classification.on_the_way},
          {"form", classification.form},
          {"decided_by", classification.decided_by}};
}

Classification ClassificationFromJson(const json& object, std::string& error) {
  JsonFields fields(object, error);
  return {.kind = KindFrom(fields),
          .models = ListFrom(fields, "models", ModelFromJson),
          .models_proved = ListFrom(fields, "models_proved", ModelFromJson),
          .fits = fields.Flag("fits"),
          .floors = FloorsFrom(fields),
          .says = RemarksFrom(fields, "says"),
          .regions = ListFrom(fields, "regions", RegionFromJson),
          .excluded = ListFrom(fields, "excluded", ExclusionFromJson),
          .rests_on_likelihood = fields.Flag("rests_on_likelihood"),
          .elements = fields.Integer("elements"),
          .checked = fields.Integer("checked"),
          .max_ulp = fields.Number("max_ulp"),
          .max_abs = fields.Number("max_abs"),
          .beyond = fields.Number("beyond"),
          .beyond_of = fields.Text("beyond_of"),
          .within = fields.Number("within"),
          .within_sums = fields.Flag("within_sums"),
          .within_forms = fields.Flag("within_forms"),
          .wrong_zeros = fields.Integer("wrong_zeros"),
          .models_tried = fields.Integer("models_tried"),
          .label = fields.Text("label"),
          .labelled = LabelledFrom(fields),
          .states_error = fields.Flag("states_error"),
          .notes = RemarksFrom(fields, "notes"),
          .facets = FacetsFrom(fields),
          .facets_in = SetsFrom(fields, "facets_in", ParseIn),
          .cuts = SetsFrom(fields, "cuts", ParseMid),
          .apart = ApartFrom(fields),
          .as_exact = AsExactFrom(fields),
          .reproduced = fields.Number("reproduced"),
          .any_order = fields.Number("any_order"),
          .piece = fields.Text("piece"),
          .reads = fields.TextLists("reads"),
          .together = fields.Texts("together"),
          .shown_by = fields.Integers("shown_by"),
          .as_written = fields.Numbers("as_written"),
          .shown_count = fields.Integer("shown_count"),
          .shown_of = fields.Integer("shown_of"),
          .on_the_way = fields.TextLists("on_the_way"),
          .form = fields.Text("form"),
          .decided_by = fields.Text("decided_by")};
}

}  // namespace ulpscope
