// Reading a run folder back, and making a new one.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "backends/sdk/safetensors.h"
#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/record/crc.h"
#include "harness/record/journal.h"
#include "harness/record/journal_format.h"
#include "harness/record/json_fields.h"
#include "harness/record/observation_json.h"
#include "harness/record/run_file.h"

namespace ulpscope {
namespace {

using nlohmann::json;
using Pair = std::pair<std::string, std::string>;

constexpr int64_t kMaxJournal = int64_t{4} << 30;
/// A trace came in one message of at most 16 MiB, and is written as it came; twice that for another way to write numbers.
constexpr int64_t kMaxTrace = int64_t{32} << 20;

/// A number of 6 to 18 digits between the two. A journal is data from outside: the file it names must be one of its own.
bool IsNumbered(std::string_view name, std::string_view before, std::string_view after) {
  if (!name.starts_with(before) || !name.ends_with(after) || name.size() < before.size() + after.size())
    return false;
  const std::string_view number = name.substr(before.size(), name.size() - before.size() - after.size());
  return number.size() >= 6 && number.size() <= 18 && std::ranges::all_of(number, IsDigit);
}

/// The number of a journal's file; -1 without a file.
int64_t FileNumberOf(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  return stem.empty() ? -1 : std::strtoll(stem.c_str(), nullptr, 10);
}

Result<RecordedResult> ResultFromJson(const json& record) {
  std::string error;
  JsonFields fields(record, error);
  RecordedResult result{
      .case_id = fields.Text("case"),
      .backend = fields.Text("backend"),
      .digest = fields.Text("digest"),
  };
  fields.Require("observation");
  if (const auto* tensors = fields.Find("tensors")) {
    JsonFields place(*tensors, error);
    result.tensors_file = place.Text("file");
    result.tensors_crc = place.Text("crc");
    if (!IsNumbered(result.tensors_file, "tensors/", ".safetensors"))
      place.Complain("file", "tensors file of a run");
  }
  if (const auto* trace = fields.Find("trace")) {
    JsonFields place(*trace, error);
    result.trace_file = place.Text("file");
    result.trace_crc = place.Text("crc");
    if (!IsNumbered(result.trace_file, "traces/", ".json")) place.Complain("file", "trace file of a run");
  }
  if (!error.empty()) return Fail("a result record: " + error);
  auto observation = ObservationFromJson(*fields.Find("observation"));
  if (!observation)
    return Fail("the result of " + result.case_id + " on " + result.backend + ": " +
                observation.error().message);
  result.observation = std::move(*observation);
  return result;
}

Result<std::string> ReadUndamaged(const RunFile& file, const std::string& crc, int64_t limit = kMaxJournal) {
  auto bytes = ULPSCOPE_TRY(ReadRunFile(file, limit));
  if (Crc32Text(bytes) != crc) return Fail(file.path().string() + " is damaged: its checksum is wrong");
  return bytes;
}

/// A resumed run covers its previous cases and those that it was resumed with. Its seed and the like cannot change.
void MergeHeader(RunHeader& header, const RunHeader& more) {
  const auto add = [](std::vector<std::string>& to, const std::vector<std::string>& from) {
    std::set<std::string> known(to.begin(), to.end());
    for (const auto& name : from) {
      if (known.insert(name).second) to.push_back(name);
    }
  };
  add(header.cases, more.cases);
  add(header.backends, more.backends);
  for (const auto& [id, digest] : more.digests) header.digests[id] = digest;
  for (const auto& [backend, how] : more.not_installed) header.not_installed[backend] = how;
  for (const auto& [backend, knobs] : more.swept) header.swept[backend] = knobs;
}

/// Content of the records after the header, in journal order.
class RecordsSoFar {
 public:
  explicit RecordsSoFar(RecordedRun& run) : run_(run) {}

  Result<void> Add(const json& record) {
    std::string error;
    JsonFields fields(record, error);
    const std::string type = fields.Text("type");
    const Pair pair{fields.Text("case"), fields.Text("backend")};
    if (type == "backend") {
      for (const auto& [package, version] : fields.TextMap("versions"))
        run_.versions[pair.second][package] = version;
      auto knobs = fields.TextLists("knobs");
      if (!knobs.empty()) run_.knobs[pair.second] = std::move(knobs);
    } else if (type == "begin") {
      open_.insert(pair);
      run_.complete = false;
    } else if (type == "result") {
      auto result = ULPSCOPE_TRY(ResultFromJson(record));
      ULPSCOPE_TRY(Covers(pair));
      for (const auto& file : {result.tensors_file, result.trace_file})
        run_.next_number = std::max(run_.next_number, FileNumberOf(file) + 1);
      open_.erase(pair);
      latest_[pair] = std::move(result);
    } else if (type == "end") {
      run_.complete = fields.Flag("complete");
      run_.stopped_after = fields.Integer("stopped_after", 0);
    } else if (type == "run") {
      const auto more = ULPSCOPE_TRY(RunHeaderFromJson(record));
      MergeHeader(run_.header, more);
      ++headers_;
      run_.complete = false;
      run_.stopped_after = 0;
    } else {
      return Fail("a record of the unknown type '" + type + "'");
    }
    if (!error.empty()) return Fail("a '" + type + "' record: " + error);
    return {};
  }

  /// A result of a cell that the run's header does not name would be left out of every report.
  Result<void> Covers(const Pair& pair) {
    if (known_headers_ != headers_) {
      cases_ = {run_.header.cases.begin(), run_.header.cases.end()};
      backends_ = {run_.header.backends.begin(), run_.header.backends.end()};
      known_headers_ = headers_;
    }
    if (cases_.contains(pair.first) && backends_.contains(pair.second)) return {};
    return Fail("a result of " + pair.first + " on " + pair.second +
                ", which the run records before it do not name");
  }

  void Finish() {
    std::map<std::string, size_t> order;
    for (const auto& id : run_.header.cases) order.emplace(id, order.size());
    for (auto& [pair, result] : latest_) {
      // The case has changed since, and has not run again yet: its old bits are no evidence on its new
      // inputs.
      const std::string digest = LookupOr(run_.header.digests, pair.first);
      if (!digest.empty() && digest != result.digest) {
        open_.insert(pair);
        run_.complete = false;
        continue;
      }
      run_.results.push_back(std::move(result));
    }
    std::ranges::stable_sort(run_.results, [&](const auto& a, const auto& b) {
      const auto rank = [&](const auto& result) { return LookupOr(order, result.case_id, order.size()); };
      return rank(a) < rank(b);
    });
    run_.unfinished.assign(open_.begin(), open_.end());
  }

 private:
  RecordedRun& run_;
  std::set<Pair> open_;
  std::map<Pair, RecordedResult> latest_;
  int headers_ = 1, known_headers_ = 0;  ///< run records so far, and those that the sets below hold
  std::set<std::string> cases_, backends_;
};

}  // namespace

const RecordedResult* RecordedRun::Find(std::string_view case_id, std::string_view backend) const {
  return FindIf(results, [&](const RecordedResult& result) {
    return result.case_id == case_id && result.backend == backend;
  });
}

ResultIndex::ResultIndex(const RecordedRun& run) {
  for (const auto& result : run.results) results_.try_emplace({result.case_id, result.backend}, &result);
}

const RecordedResult* ResultIndex::Find(std::string_view case_id, std::string_view backend) const {
  return LookupOr(results_, std::pair(case_id, backend));
}

bool IsSwept(const std::map<std::string, std::vector<std::string>>& swept, const Case& test_case,
             const std::string& backend) {
  const auto* knobs = Lookup(swept, backend);
  return knobs == nullptr ||
         std::ranges::any_of(*knobs, [&](const std::string& knob) { return Contains(test_case.tags, knob); });
}

bool HoldsRun(const std::filesystem::path& dir) {
  bool whole = false;
  const auto journal = OpenRunFile({.folder = dir, .name = "journal.jsonl"});
  if (!journal) return false;
  (void)ForEachLine(*journal, kMaxJournal, [&](const FileLine& line) -> Result<void> {
    whole = line.whole;
    return Fail("one line is enough");
  });
  return whole;
}

std::filesystem::path RunFolderOf(const std::filesystem::path& path) {
  return path.filename() == "journal.jsonl" ? path.parent_path() : path;
}

Result<RecordedRun> ReadRun(const std::filesystem::path& path, TensorLoading loading) {
  RecordedRun run;
  run.dir = RunFolderOf(path);
  const auto file = run.dir / "journal.jsonl";
  RecordsSoFar collector(run);
  const auto opened = OpenRunFile({.folder = run.dir, .name = "journal.jsonl"});
  if (!opened) return Fail(run.dir.string() + " is no run folder: " + opened.error().Text());
  const auto journal =
      ForEachRecordOf(*opened, kMaxJournal, {}, [&](const json& record, int line) -> Result<void> {
        const size_t i = run.records++;
        if (i == 0) {
          run.header = ULPSCOPE_TRY(RunHeaderFromJson(record));
          return {};
        }
        const auto number = record.find("n");
        const bool in_place = number == record.end() || *number == i;
        const auto added = in_place
                               ? collector.Add(record)
                               : Result<void>(Fail("a record before this one is missing or there twice"));
        if (added) return {};
        Error error = added.error();
        error.pos = {.line = line, .column = 1};
        return Fail(std::move(error));
      });
  if (!journal) {
    Error error = journal.error();
    if (run.records == 0 && error.pos.line == 0)
      return Fail(run.dir.string() + " is no run folder: " + error.message);
    if (error.pos.line > 0) error.pos.file = file.string();
    return Fail(error);
  }
  if (run.records == 0) return Fail(run.dir.string() + " holds an empty journal");
  run.whole_bytes = journal->whole_bytes;
  if (journal->torn)
    run.notes.push_back("the last record of the journal is torn (the run was killed) and was left out");
  collector.Finish();
  if (loading == TensorLoading::kNow) {
    for (auto& result : run.results) {
      ULPSCOPE_TRY(LoadTensors(run, result));
    }
  }
  return run;
}

Result<void> LoadTensors(const RecordedRun& run, RecordedResult& result) {
  if (result.tensors_file.empty() || !result.observation.values.empty()) return {};
  const RunFile file{.folder = run.dir, .name = result.tensors_file};
  // A length that its own header does not account for is reported before the rest is read.
  const auto open = ULPSCOPE_TRY(OpenRunFile(file));
  const auto extent = ULPSCOPE_TRY(open.Extent());
  ULPSCOPE_TRY(sdk::ReadSafetensorsHeader(open.fd(), extent.size, file.path().string()));
  const auto bytes = ULPSCOPE_TRY(ReadUndamaged(file, result.tensors_crc));
  result.observation.values =
      ULPSCOPE_TRY(sdk::ParseSafetensors(std::as_bytes(std::span(bytes)), file.path().string()));
  return {};
}

Result<void> CheckHoles(const RecordedRun& run, const RecordedResult& result, const DueShape& due) {
  // Files up to this size are read without the check.
  constexpr int64_t kSmall = int64_t{64} << 20;
  if (result.tensors_file.empty()) return {};
  const auto file = ULPSCOPE_TRY(OpenRunFile({.folder = run.dir, .name = result.tensors_file}));
  const auto extent = ULPSCOPE_TRY(file.Extent());
  if (extent.size <= kSmall || extent.stored >= extent.size / 2) return {};
  const auto tensors = ULPSCOPE_TRY(sdk::ReadSafetensorsHeader(file.fd(), extent.size, file.shown()));
  for (const auto& [name, tensor] : tensors) {
    const auto shape = due(name);
    if (shape && *shape != tensor.shape)
      return Fail(Problem(file.shown() + " is damaged: " + std::to_string(extent.stored) + " of its " +
                              std::to_string(extent.size) + " bytes were ever written, and " + name +
                              " has another shape than in the program",
                          Describe(tensor.dtype, tensor.shape), Describe(tensor.dtype, *shape)));
  }
  return {};
}

Result<void> LoadTrace(const RecordedRun& run, RecordedResult& result) {
  if (result.trace_file.empty() || !result.observation.trace.empty()) return {};
  const auto file = run.dir / result.trace_file;
  const auto bytes = ULPSCOPE_TRY(
      ReadUndamaged({.folder = run.dir, .name = result.trace_file}, result.trace_crc, kMaxTrace));
  const auto object = sdk::ParseMessage(bytes, {.max_bytes = bytes.size() + 1, .max_depth = 16});
  if (!object) return Fail(file.string() + ": " + object.error().message);
  std::string error;
  JsonFields fields(*object, error);
  result.observation.trace = TraceFromJson(fields.Find("nodes"), error);
  if (error.empty()) error = TraceProblem(result.observation.trace, result.observation.casts);
  if (!error.empty()) return Fail(file.string() + ": " + error);
  return {};
}

Result<std::filesystem::path> MakeRunFolder(const std::filesystem::path& out, const std::string& id,
                                            const std::string& started) {
  if (!out.empty()) {
    ULPSCOPE_TRY(MakeFolders(out, "the run folder "));
    return out;
  }
  std::string name;
  for (const char c : started) {
    if (c != '-' && c != ':') name += c;
  }
  name += "-" + id;
  const std::filesystem::path runs = "runs";
  ULPSCOPE_TRY(MakeFolders(runs / name, "the run folder "));
  // A link is replaced by renaming a new one over it, so that "latest" never points nowhere.
  const auto fresh = runs / (".latest-" + id);
  std::error_code error;
  std::filesystem::create_directory_symlink(name, fresh, error);
  if (!error) std::filesystem::rename(fresh, runs / "latest", error);
  return runs / name;
}

}  // namespace ulpscope
