// Classifications as JSON, both ways.
#include "harness/record/classified.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <utility>

#include "backends/sdk/json_sax.h"
#include "backends/sdk/wire.h"
#include "harness/record/file_bytes.h"
#include "harness/record/journal_format.h"
#include "harness/record/json_fields.h"

namespace ulpscope {
namespace {

using nlohmann::json;

constexpr int64_t kMostBytes = int64_t{4} << 30;

std::filesystem::path FileIn(const std::filesystem::path& dir) { return dir / "classified.jsonl"; }

json ToJson(const PrecisionModel& model) {
  return {{"in", model.in},   {"prod", model.prod}, {"acc", model.acc},
          {"mid", model.mid}, {"out", model.out},   {"cuts", model.cuts}};
}

PrecisionModel ModelFromJson(const json& object, std::string& error) {
  JsonFields fields(object, error);
  return {.in = fields.TextMap("in"),
          .prod = fields.Text("prod"),
          .acc = fields.Text("acc"),
          .mid = fields.Text("mid"),
          .out = fields.Text("out"),
          .cuts = fields.TextMap("cuts")};
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
          {"why", exclusion.why}};
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
          .why = fields.Text("why")};
}

json ToJson(const Classification& classification) {
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
          {"says", classification.says},
          {"regions", regions},
          {"excluded", excluded},
          {"rests_on_likelihood", classification.rests_on_likelihood},
          {"elements", classification.elements},
          {"checked", classification.checked},
          {"max_ulp", sdk::FloatToJson(classification.max_ulp)},
          {"max_abs", sdk::FloatToJson(classification.max_abs)},
          {"beyond", sdk::FloatToJson(classification.beyond)},
          {"within", sdk::FloatToJson(classification.within)},
          {"within_forms", classification.within_forms},
          {"within_sums", classification.within_sums},
          {"models_tried", classification.models_tried},
          {"label", classification.label},
          {"notes", classification.notes},
          {"facets", classification.facets},
          {"facets_in", classification.facets_in},
          {"cuts", classification.cuts},
          {"apart", classification.apart},
          {"as_exact", classification.as_exact},
          {"reproduced", sdk::FloatToJson(classification.reproduced)},
          {"piece", classification.piece},
          {"reads", classification.reads},
          {"together", classification.together},
          {"shown_by", classification.shown_by},
          {"as_written", as_written},
          {"shown_count", classification.shown_count},
          {"shown_of", classification.shown_of},
          {"on_the_way", classification.on_the_way}};
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
  using enum ClassificationKind;
  const std::string word = fields.Text("kind");
  for (const auto kind : {kIdentified, kIndistinguishable, kUnmodelled, kExactOnly, kNotFloating,
                          kNoReference, kNotJudged, kWrongShape, kWrongValue}) {
    if (word == Name(kind)) return kind;
  }
  fields.Complain("kind", "kind of classification");
  return kNoReference;
}

Classification ClassificationFromJson(const json& object, std::string& error) {
  JsonFields fields(object, error);
  return {.kind = KindFrom(fields),
          .models = ListFrom(fields, "models", ModelFromJson),
          .models_proved = ListFrom(fields, "models_proved", ModelFromJson),
          .fits = fields.Flag("fits"),
          .floors = FloorsFrom(fields),
          .says = fields.Texts("says"),
          .regions = ListFrom(fields, "regions", RegionFromJson),
          .excluded = ListFrom(fields, "excluded", ExclusionFromJson),
          .rests_on_likelihood = fields.Flag("rests_on_likelihood"),
          .elements = fields.Integer("elements"),
          .checked = fields.Integer("checked"),
          .max_ulp = fields.Number("max_ulp"),
          .max_abs = fields.Number("max_abs"),
          .beyond = fields.Number("beyond"),
          .within = fields.Number("within"),
          .within_sums = fields.Flag("within_sums"),
          .within_forms = fields.Flag("within_forms"),
          .models_tried = fields.Integer("models_tried"),
          .label = fields.Text("label"),
          .notes = fields.Texts("notes"),
          .facets = fields.TextLists("facets"),
          .facets_in = fields.TextLists("facets_in"),
          .cuts = fields.TextLists("cuts"),
          .apart = ApartFrom(fields),
          .as_exact = fields.TextLists("as_exact"),
          .reproduced = fields.Number("reproduced"),
          .piece = fields.Text("piece"),
          .reads = fields.TextLists("reads"),
          .together = fields.Texts("together"),
          .shown_by = fields.Integers("shown_by"),
          .as_written = fields.Numbers("as_written"),
          .shown_count = fields.Integer("shown_count"),
          .shown_of = fields.Integer("shown_of"),
          .on_the_way = fields.TextLists("on_the_way")};
}

std::string RunLine(const std::string& id) { return JournalLine({{"type", "run"}, {"id", id}}); }

std::string ResultLine(const std::string& case_id, const std::string& digest, const std::string& backend,
                       const Classified& classified) {
  json values = json::object();
  for (const auto& [name, classification] : classified.values) values[name] = ToJson(classification);
  return JournalLine({{"type", "classified"},
                      {"case", case_id},
                      {"digest", digest},
                      {"backend", backend},
                      {"values", values}});
}

std::string OracleLine(const std::string& engine, const OracleCounts& counts) {
  return JournalLine({{"type", "oracle"},
                      {"engine", engine},
                      {"fast", counts.fast},
                      {"compared", counts.compared},
                      {"boost", counts.boost}});
}

struct ClassifiedFile {
  bool belongs = false;    ///< to the run; else it is another run's, or not there
  size_t whole_bytes = 0;  ///< up to the last whole record
  bool torn = false;       ///< something follows it
};

Error Damaged(Error error, const std::filesystem::path& file) {
  error.pos.file = file.string();
  error.hint = "ulpscope judge writes it anew";
  return error;
}

/// Each record of the file that is `wanted`, one at a time, if the file belongs to the run: all of a long one at once, as JSON, is
/// ten times the file.
Result<ClassifiedFile> ForEachClassified(const std::filesystem::path& file, const std::string& run_id,
                                         const std::function<bool(std::string_view)>& wanted,
                                         const std::function<std::string(const json& record)>& take) {
  ClassifiedFile found;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return found;
  bool first = true;
  const auto journal =
      ForEachRecordOf(file, kMostBytes, wanted, [&](const json& record, int line) -> Result<void> {
        std::string problem;
        if (std::exchange(first, false)) found.belongs = JsonFields(record, problem).Text("id") == run_id;
        problem = found.belongs ? take(record) : "";
        if (problem.empty()) return {};
        return Fail(Error{.message = "no classification: " + problem,
                          .pos = {.file = "", .line = line, .column = 1}});
      });
  if (!journal) return Fail(Damaged(journal.error(), file));
  found.whole_bytes = journal->whole_bytes;
  found.torn = journal->torn;
  return found;
}

/// The values of one record; "" or what is wrong with it.
std::string ValuesOf(const json& record, Classified* classified) {
  std::string error;
  JsonFields fields(record, error);
  const json* values = fields.Find("values");
  if (values == nullptr || !values->is_object()) return "'values' is no object";
  *classified = {};
  for (const auto& [name, value] : values->items())
    classified->values[name] = ClassificationFromJson(value, error);
  return error;
}

void CountOracle(JsonFields& fields, std::string* engine, OracleCounts* counts) {
  *engine = fields.Text("engine");
  *counts += {.fast = fields.Integer("fast"),
              .compared = fields.Integer("compared"),
              .boost = fields.Integer("boost")};
}

/// One record into `classified`. Lines about results that the journal does not hold, or about a case as it
/// was before it changed, are passed over.
std::string Take(const json& record, const ResultIndex& results, ClassifiedRun* classified) {
  std::string error;
  JsonFields fields(record, error);
  const std::string type = fields.Text("type");
  if (type == "oracle") {
    CountOracle(fields, &classified->engine, &classified->counts);
  } else if (type == "classified") {
    const std::string case_id = fields.Text("case"), backend = fields.Text("backend");
    const RecordedResult* result = results.Find(case_id, backend);
    if (result == nullptr || result->digest != fields.Text("digest")) return error;
    if (auto problem = ValuesOf(record, &classified->results[{case_id, backend}]); !problem.empty())
      return problem;
  }
  return error;
}

/// What a record says of itself, without its values, at which it stops: they are nearly all of the line.
class HeadOfRecord : public sdk::JsonEvents {
 public:
  std::map<std::string, std::string> texts;

  bool key(string_t& name) override {
    if (depth_ == 1) key_ = name;
    // The writer's keys are sorted, so that all of a head stands before the values; in another order the line is read to its end.
    return !(depth_ == 1 && key_ == "values" && texts.contains("type"));
  }
  bool string(string_t& text) override {
    if (depth_ == 1) texts[key_] = text;
    return true;
  }
  bool start_object(std::size_t) override { return ++depth_ > 0; }
  bool end_object() override { return depth_-- > 0; }
  bool start_array(std::size_t) override { return ++depth_ > 0; }
  bool end_array() override { return depth_-- > 0; }

 private:
  int depth_ = 0;
  std::string key_;
};

/// Everything but the classifications of other cases.
std::function<bool(std::string_view)> OnlyCase(const std::string& id) {
  std::string whole = "\"case\":" + json(id).dump(-1, ' ', false, json::error_handler_t::replace);
  std::string companion = whole.substr(0, whole.size() - 1) + "~";
  return [whole = std::move(whole), companion = std::move(companion)](std::string_view line) {
    return line.find("\"type\":\"classified\"") == line.npos || line.find(whole) != line.npos ||
           line.find(companion) != line.npos;
  };
}

Result<ClassifiedRun> ReadWanted(const RecordedRun& run,
                                 const std::function<bool(std::string_view)>& wanted) {
  ClassifiedRun classified;
  const ResultIndex results(run);
  ULPSCOPE_TRY(ForEachClassified(FileIn(run.dir), run.header.id, wanted,
                                 [&](const json& record) { return Take(record, results, &classified); }));
  return classified;
}

}  // namespace

Result<ClassifiedRun> ReadClassified(const RecordedRun& run) { return ReadWanted(run, {}); }

Result<ClassifiedRun> ReadClassifiedOf(const RecordedRun& run, const std::string& case_id) {
  return ReadWanted(run, OnlyCase(case_id));
}

Result<ClassifiedRun> OpenClassified(const RecordedRun& run) {
  auto recorded = std::make_shared<RecordedClassifications>(FileIn(run.dir));
  ClassifiedRun classified;
  ULPSCOPE_TRY(recorded->Index(run, &classified));
  classified.recorded = std::move(recorded);
  return classified;
}

Result<void> RecordedClassifications::Index(const RecordedRun& run, ClassifiedRun* classified) {
  std::error_code code;
  if (!std::filesystem::exists(file_, code)) return {};
  const ResultIndex results(run);
  bool first = true, belongs = false;
  int number = 0;
  return ForEachLine(file_, kMostBytes, [&](const FileLine& line) -> Result<void> {
    ++number;
    if (!line.whole) return {};
    const auto wrong = [&](Error error) {
      error.pos = {.file = file_.string(), .line = number, .column = 1};
      return Fail(Damaged(std::move(error), file_));
    };
    const auto text = RecordText(line.line);
    if (!text) return wrong(text.error());
    HeadOfRecord head;
    json::sax_parse(*text, &head);
    if (std::exchange(first, false)) belongs = head.texts["id"] == run.header.id;
    if (!belongs) return {};
    if (head.texts["type"] == "oracle") {
      const auto record = ParseRecord(line.line);
      if (!record) return wrong(record.error());
      std::string error;
      JsonFields fields(*record, error);
      CountOracle(fields, &classified->engine, &classified->counts);
      if (!error.empty()) return wrong(Problem("no classification: " + error, {}, {}));
      return {};
    }
    if (head.texts["type"] != "classified") return {};
    const RecordedResult* result = results.Find(head.texts["case"], head.texts["backend"]);
    if (result == nullptr || result->digest != head.texts["digest"]) return {};
    places_[{result->case_id, result->backend}] = {
        .offset = line.offset, .size = line.line.size(), .line = number};
    return {};
  });
}

bool RecordedClassifications::Has(const std::string& case_id, const std::string& backend) const {
  return places_.contains({case_id, backend});
}

Result<Classified> RecordedClassifications::Read(const std::string& case_id,
                                                 const std::string& backend) const {
  const Place& place = places_.at({case_id, backend});
  const auto line = ULPSCOPE_TRY(ReadBytesAt(file_, place.offset, place.size));
  const auto wrong = [&](Error error) {
    error.pos = {.line = place.line, .column = 1};
    return Fail(Damaged(std::move(error), file_));
  };
  const auto record = ParseRecord(line);
  if (!record) return wrong(record.error());
  Classified classified;
  if (auto problem = ValuesOf(*record, &classified); !problem.empty())
    return wrong(Problem("no classification: " + problem, {}, {}));
  return classified;
}

Result<void> WriteClassified(const RecordedRun& run, const ClassifiedRun& classified) {
  std::string text = RunLine(run.header.id);
  for (const auto& [key, one] : classified.results) {
    if (one.fault.empty()) text += ResultLine(key.first, run.header.digests.at(key.first), key.second, one);
  }
  text += OracleLine(classified.engine, classified.counts);
  return ReplaceFileBytes(FileIn(run.dir), text);
}

Result<ClassifiedWriter> ClassifiedWriter::Open(const std::filesystem::path& dir, const std::string& run_id) {
  ClassifiedWriter writer(FileIn(dir));
  const auto before =
      ULPSCOPE_TRY(ForEachClassified(writer.file_, run_id, {}, [](const json&) { return std::string(); }));
  if (!before.belongs) {
    ULPSCOPE_TRY(WriteFileBytes(writer.file_, RunLine(run_id)));
  } else if (before.torn) {
    std::error_code error;
    std::filesystem::resize_file(writer.file_, before.whole_bytes, error);
    if (error)
      return Fail("cannot cut the torn last line off " + writer.file_.string() + ": " + error.message());
  }
  return writer;
}

Result<void> ClassifiedWriter::Append(const std::string& line) const {
  std::ofstream stream(file_, std::ios::binary | std::ios::app);
  stream << line;
  stream.close();
  if (!stream) return Fail("cannot write " + file_.string() + ": " + std::strerror(errno));
  return {};
}

Result<void> ClassifiedWriter::Store(const std::string& case_id, const std::string& digest,
                                     const std::string& backend, const Classified& classified) const {
  if (!classified.fault.empty()) return {};
  return Append(ResultLine(case_id, digest, backend, classified));
}

Result<void> ClassifiedWriter::Oracle(const std::string& engine, const OracleCounts& counts) const {
  return Append(OracleLine(engine, counts));
}

}  // namespace ulpscope
