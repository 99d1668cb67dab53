// Lines of the file of classifications.
#include "harness/record/classified.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "backends/sdk/json_sax.h"
#include "backends/sdk/wire.h"
#include "harness/record/classification_json.h"
#include "harness/record/file_bytes.h"
#include "harness/record/journal_format.h"
#include "harness/record/json_fields.h"
#include "harness/record/run_file.h"

namespace ulpscope {
namespace {

using nlohmann::json;

constexpr int64_t kMostBytes = int64_t{4} << 30;

RunFile FileIn(const std::filesystem::path& dir) { return {.folder = dir, .name = "classified.jsonl"}; }

std::string RunLine(const std::string& id) { return JournalLine({{"type", "run"}, {"id", id}}); }

std::string ResultLine(const std::string& case_id, const std::string& digest, const std::string& backend,
                       const Classified& classified) {
  json values = json::object();
  for (const auto& [name, classification] : classified.values)
    values[name] = ClassificationToJson(classification);
  json line = {{"type", "classified"},
               {"case", case_id},
               {"digest", digest},
               {"backend", backend},
               {"values", values}};
  if (!classified.looked_at.empty()) line["looked_at"] = classified.looked_at;
  return JournalLine(std::move(line));
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

Error Damaged(Error error, const std::string& file) {
  error.pos.file = file;
  error.hint = "ulpscope judge writes it anew";
  return error;
}

/// Each record of the file that is `wanted`, one at a time, if the file belongs to the run: all of a long one at once, as JSON, is
/// ten times the file.
Result<ClassifiedFile> ForEachClassified(const RunFile& file, const std::string& run_id,
                                         const std::function<bool(std::string_view)>& wanted,
                                         const std::function<std::string(const json& record)>& take) {
  ClassifiedFile found;
  const bool there = ULPSCOPE_TRY(IsThere(file));
  if (!there) return found;
  const auto opened = ULPSCOPE_TRY(OpenRunFile(file));
  bool first = true;
  const auto journal =
      ForEachRecordOf(opened, kMostBytes, wanted, [&](const json& record, int line) -> Result<void> {
        std::string problem;
        if (std::exchange(first, false)) found.belongs = JsonFields(record, problem).Text("id") == run_id;
        problem = found.belongs ? take(record) : "";
        if (problem.empty()) return {};
        return Fail(Error{.message = "no classification: " + problem,
                          .pos = {.file = "", .line = line, .column = 1}});
      });
  if (!journal) return Fail(Damaged(journal.error(), file.path().string()));
  found.whole_bytes = journal->whole_bytes;
  found.torn = journal->torn;
  return found;
}

/// The values of one record; "" or the problem with it.
std::string ValuesOf(const json& record, Classified* classified) {
  std::string error;
  JsonFields fields(record, error);
  const json* values = fields.Find("values");
  if (values == nullptr || !values->is_object()) return "'values' is no object";
  *classified = {};
  for (const auto& [name, value] : values->items())
    classified->values[name] = ClassificationFromJson(value, error);
  if (const json* looked_at = fields.Find("looked_at"); looked_at != nullptr && looked_at->is_object()) {
    JsonFields lists(*looked_at, error);
    for (const auto& [name, list] : looked_at->items()) classified->looked_at[name] = lists.Integers(name);
  }
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

/// The head of a record, without its values, at which it stops: they are nearly all of the line.
class HeadOfRecord : public sdk::JsonEvents {
 public:
  std::map<std::string, std::string> texts;

  bool key(string_t& name) override {
    if (depth_ == 1) key_ = name;
    // The writer sorts its keys, so the whole head precedes the values; in another order the line is read to its end.
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
  ClassifiedRun classified;
  const bool there = ULPSCOPE_TRY(IsThere(FileIn(run.dir)));
  if (!there) return classified;
  auto file = ULPSCOPE_TRY(OpenRunFile(FileIn(run.dir)));
  auto recorded = std::make_shared<RecordedClassifications>(std::move(file));
  ULPSCOPE_TRY(recorded->Index(run, &classified));
  classified.recorded = std::move(recorded);
  return classified;
}

Result<void> RecordedClassifications::Index(const RecordedRun& run, ClassifiedRun* classified) {
  const ResultIndex results(run);
  bool first = true, belongs = false;
  int number = 0;
  return ForEachLine(file_, kMostBytes, [&](const FileLine& line) -> Result<void> {
    ++number;
    if (!line.whole) return {};
    const auto wrong = [&](Error error) {
      error.pos = {.file = file_.shown(), .line = number, .column = 1};
      return Fail(Damaged(std::move(error), file_.shown()));
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
  const auto line = ULPSCOPE_TRY(file_.ReadAt(place.offset, place.size));
  const auto wrong = [&](Error error) {
    error.pos = {.line = place.line, .column = 1};
    return Fail(Damaged(std::move(error), file_.shown()));
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
  return ReplaceRunFile(FileIn(run.dir), text);
}

Result<ClassifiedWriter> ClassifiedWriter::Open(const std::filesystem::path& dir, const std::string& run_id) {
  const RunFile name = FileIn(dir);
  const auto before =
      ULPSCOPE_TRY(ForEachClassified(name, run_id, {}, [](const json&) { return std::string(); }));
  if (!before.belongs) {
    ULPSCOPE_TRY(ReplaceRunFile(name, RunLine(run_id)));
  }
  auto file = ULPSCOPE_TRY(OpenRunFileToAppend(name));
  if (before.torn && before.belongs && ::ftruncate(file.fd(), static_cast<off_t>(before.whole_bytes)) != 0)
    return Fail("cannot cut the torn last line off " + file.shown() + ": " + std::strerror(errno));
  return ClassifiedWriter(std::move(file));
}

Result<void> ClassifiedWriter::Store(const std::string& case_id, const std::string& digest,
                                     const std::string& backend, const Classified& classified) const {
  if (!classified.fault.empty()) return {};
  return file_.Write(ResultLine(case_id, digest, backend, classified));
}

Result<void> ClassifiedWriter::Oracle(const std::string& engine, const OracleCounts& counts) const {
  return file_.Write(OracleLine(engine, counts));
}

}  // namespace ulpscope
