// Journal lines and the header record.
#include "harness/record/journal_format.h"

#include "harness/base/find.h"
#include "harness/record/crc.h"
#include "harness/record/file_bytes.h"
#include "harness/record/json_fields.h"
#include "harness/record/observation_json.h"

namespace ulpscope {
namespace {

using nlohmann::json;

constexpr std::string_view kBeforeCrc = R"({"crc":")";
constexpr std::string_view kBeforeRecord = R"(","record":)";
constexpr size_t kPrefix = kBeforeCrc.size() + 8 + kBeforeRecord.size();
constexpr int kMaxDepth = 64;
constexpr size_t kMaxRecord = size_t{64} << 20;

Error AtLine(Error error, int line) {
  error.pos = {.file = "journal.jsonl", .line = line, .column = 1};
  return error;
}

/// Handles a line of a journal; nothing if it has no newline. A record is complete only with that: the next one would
/// otherwise be appended to the same line.
Result<void> TakeLine(const std::optional<std::string_view>& line, int number,
                      const std::function<bool(std::string_view)>& wanted,
                      const std::function<Result<void>(json record, int line)>& take, JournalText* journal) {
  journal->torn = !line;
  if (journal->torn) return {};
  if (!wanted || wanted(*line)) {
    auto record = ParseRecord(*line);
    if (!record) return Fail(AtLine(record.error(), number));
    ULPSCOPE_TRY(take(std::move(*record), number));
  }
  journal->whole_bytes += line->size() + 1;
  return {};
}

}  // namespace

Result<std::string_view> RecordText(std::string_view line) {
  if (line.size() < kPrefix + 2 || !line.starts_with(kBeforeCrc) || line.back() != '}' ||
      line.substr(kBeforeCrc.size() + 8, kBeforeRecord.size()) != kBeforeRecord) {
    return Fail("no journal record");
  }
  const std::string_view record = line.substr(kPrefix, line.size() - kPrefix - 1);
  const std::string crc = Crc32Text(record);
  if (crc != line.substr(kBeforeCrc.size(), 8)) {
    return Fail(
        Problem("the record's checksum is wrong", crc, std::string(line.substr(kBeforeCrc.size(), 8))));
  }
  return record;
}

Result<json> ParseRecord(std::string_view line) {
  const auto record = ULPSCOPE_TRY(RecordText(line));
  return sdk::ParseMessage(record, {.max_bytes = kMaxRecord, .max_depth = kMaxDepth});
}

std::string JournalLine(const json& record) {
  const std::string text = record.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string line(kBeforeCrc);
  line += Crc32Text(text);
  line += kBeforeRecord;
  line += text;
  line += "}\n";
  return line;
}

Result<JournalText> ParseJournal(std::string_view text) {
  JournalText journal;
  const auto keep = [&](json record, int line) -> Result<void> {
    journal.records.push_back(std::move(record));
    journal.lines.push_back(line);
    return {};
  };
  for (int number = 1; !text.empty() && !journal.torn; ++number) {
    const size_t end = text.find('\n');
    const auto line = end == text.npos ? std::nullopt : std::optional(text.substr(0, end));
    ULPSCOPE_TRY(TakeLine(line, number, {}, keep, &journal));
    text.remove_prefix(line ? end + 1 : 0);
  }
  return journal;
}

Result<JournalText> ForEachRecordOf(const FileHandle& file, int64_t limit,
                                    const std::function<bool(std::string_view)>& wanted,
                                    const std::function<Result<void>(json record, int line)>& take) {
  JournalText journal;
  int number = 0;
  ULPSCOPE_TRY(ForEachLine(file, limit, [&](const FileLine& line) {
    return TakeLine(line.whole ? std::optional(line.line) : std::nullopt, ++number, wanted, take, &journal);
  }));
  return journal;
}

json ToJson(const PlannedCase& planned) {
  json object{{"id", planned.id}, {"digest", planned.digest}};
  if (!planned.backends.empty()) object["backends"] = planned.backends;
  return object;
}

PlannedCase PlannedCaseFromJson(const json& object, std::string& error) {
  JsonFields fields(object, error);
  return {.id = fields.Text("id"), .digest = fields.Text("digest"), .backends = fields.Texts("backends")};
}

json ToJson(const RunHeader& header) {
  json environment = json::object();
  for (const auto& [name, value] : header.environment)
    environment[name] = value ? json(*value) : json(nullptr);
  json cases = json::array();
  for (const auto& id : header.cases)
    cases.push_back(ToJson(PlannedCase{.id = id, .digest = LookupOr(header.digests, id)}));
  json record = {{"type", "run"},
                 {"format", 1},
                 {"id", header.id},
                 {"started", header.started},
                 {"version", header.version},
                 {"seed", header.seed},
                 {"repeat", header.repeat},
                 {"trace", header.trace},
                 {"backends", header.backends},
                 {"cases", cases},
                 {"knobs", header.knobs},
                 {"swept", header.swept},
                 {"not_installed", header.not_installed},
                 {"environment", environment}};
  for (const auto& planned : header.plan) record["plan"].push_back(ToJson(planned));
  return record;
}

Result<RunHeader> RunHeaderFromJson(const json& record) {
  std::string error;
  JsonFields fields(record, error);
  if (fields.Text("type") != "run") return Fail("the journal does not begin with a run record");
  if (fields.Integer("format") != 1) return Fail("the journal is of another format than 1");
  RunHeader header{.id = fields.Text("id"),
                   .started = fields.Text("started"),
                   .version = fields.Text("version"),
                   .seed = fields.Integer("seed"),
                   .repeat = fields.Integer("repeat", 1),
                   .trace = fields.Flag("trace"),
                   .backends = fields.Texts("backends"),
                   .knobs = fields.TextMap("knobs"),
                   .swept = fields.TextLists("swept"),
                   .not_installed = fields.TextMap("not_installed")};
  if (const auto* cases = fields.Find("cases"); cases != nullptr && cases->is_array()) {
    for (const auto& entry : *cases) {
      JsonFields one(entry, error);
      header.cases.push_back(one.Text("id"));
      header.digests[header.cases.back()] = one.Text("digest");
    }
  } else {
    fields.Complain("cases", "array");
  }
  if (const auto* plan = fields.Find("plan")) {
    if (!plan->is_array()) fields.Complain("plan", "array");
    for (const auto& entry : *plan) header.plan.push_back(PlannedCaseFromJson(entry, error));
  }
  if (const auto* environment = fields.Find("environment");
      environment != nullptr && environment->is_object()) {
    for (const auto& [name, value] : environment->items()) {
      header.environment[name] = value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
    }
  }
  if (!error.empty()) return Fail("the journal's run record: " + error);
  return header;
}

}  // namespace ulpscope
