// The journal of a run: append-only JSON Lines, one write(2) and one CRC-32 per record. All reports derive
// from it.
//
//   {"crc":"1a2b3c4d","record":{"type":"run", ...}}  seed, backends, cases, date; again when resumed
//   {"crc":"...","record":{"type":"backend", ...}}   what an adapter's hello said: versions, knobs
//   {"crc":"...","record":{"type":"begin", ...}}     before a case runs, so that a crash names its case
//   {"crc":"...","record":{"type":"result", ...}}    the Observation; tensors and trace in files beside it
//   {"crc":"...","record":{"type":"end", ...}}       complete, interrupted, or stopped at failures
//
// A record is whole or it is the torn last line of a run that was killed: the reader reports that and goes on
// without it. Any other damage is refused. A later result for the same (case, backend) replaces an earlier
// one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/base/result.h"
#include "harness/model/case.h"
#include "harness/model/observation.h"
#include "harness/record/run_file.h"

namespace ulpscope {

/// A case of a run, as it was frozen before anything ran.
struct PlannedCase {
  std::string id, digest;
  std::vector<std::string> backends = {};  ///< it runs on these; empty: all of the run
  friend bool operator==(const PlannedCase&, const PlannedCase&) = default;
};

struct RunHeader {
  std::string id, started;  ///< "2026-11-20T22:53:37Z"
  std::string version;      ///< of ulpscope
  int64_t seed = 0;
  int64_t repeat = 1;
  bool trace = true;
  std::vector<std::string> backends = {};           ///< canonical backend strings
  std::vector<std::string> cases = {};              ///< ids, in the order of the run
  std::map<std::string, std::string> digests = {};  ///< case id -> CaseDigest
  std::map<std::string, std::string> knobs;         ///< --knob
  /// --knob-sweep: backend string -> the knobs of its cells. A case takes part if one of its tags is one of them.
  /// Empty: every case runs on every backend.
  std::map<std::string, std::vector<std::string>> swept;
  std::map<std::string, std::string> not_installed;  ///< backend -> how to install it
  std::map<std::string, std::optional<std::string>> environment = {};
  /// Every case of the whole run, in its order; set for a shard, and for a sweep. Shards of one plan can be
  /// merged, and cells that none of them ran are known to be missing. Empty: `cases` are the whole run, each
  /// on every backend.
  std::vector<PlannedCase> plan = {};
};

struct RecordedResult {
  std::string case_id;
  std::string backend;
  std::string digest;             ///< of the case as it was run
  std::string tensors_file = {};  ///< relative to the run folder; empty when the result has none
  std::string tensors_crc = {};
  std::string trace_file = {};  ///< relative to the run folder; empty when the result has none
  std::string trace_crc = {};
  Observation observation = {};
};

struct RecordedRun {
  std::filesystem::path dir;
  RunHeader header;
  std::map<std::string, std::map<std::string, std::string>> versions =
      {};  ///< backend string -> package -> version
  std::map<std::string, std::map<std::string, std::vector<std::string>>> knobs =
      {};                                    ///< backend string -> knob -> values, default first
  std::vector<RecordedResult> results = {};  ///< sorted by case (run order), then backend
  std::vector<std::pair<std::string, std::string>> unfinished =
      {};                               ///< begun without a result: (case, backend)
  bool complete = false;                ///< ended, every case on every backend
  int64_t stopped_after = 0;            ///< the requested failures at which it stopped; 0: it did not
  int64_t next_number = 0;              ///< above those of all files that the journal names
  size_t records = 0;                   ///< of its journal
  size_t whole_bytes = 0;               ///< of its journal, up to the last whole record
  std::vector<std::string> notes = {};  ///< e.g. "the last record is torn"

  const RecordedResult* Find(std::string_view case_id, std::string_view backend) const;
};

/// An index of a run's results, for repeated look-ups. `run` must outlive this, and keep its results.
class ResultIndex {
 public:
  explicit ResultIndex(const RecordedRun& run);
  const RecordedResult* Find(std::string_view case_id, std::string_view backend) const;

 private:
  std::map<std::pair<std::string_view, std::string_view>, const RecordedResult*> results_;
};

/// False for the cells that a sweep of knobs leaves out.
bool IsSwept(const std::map<std::string, std::vector<std::string>>& swept, const Case& test_case,
             const std::string& backend);

/// True if `dir` holds a journal with at least one whole record.
bool HoldsRun(const std::filesystem::path& dir);

enum class TensorLoading { kNow, kLater };

/// `path`, or the folder of the journal if it is one.
std::filesystem::path RunFolderOf(const std::filesystem::path& path);

/// Reads a run folder (or the path of its journal). With kLater, `observation.values` stay empty until
/// LoadTensors.
Result<RecordedRun> ReadRun(const std::filesystem::path& dir, TensorLoading loading = TensorLoading::kNow);
Result<void> LoadTensors(const RecordedRun& run, RecordedResult& result);
/// The shape that a value has in its program; nothing if unknown.
using DueShape = std::function<std::optional<Shape>(const std::string& value)>;
/// Call before LoadTensors for a run folder from elsewhere: a sparse file of gigabytes costs its sender nothing. One
/// whose shapes are not those of the program is an error.
Result<void> CheckHoles(const RecordedRun& run, const RecordedResult& result, const DueShape& due);
/// Reads the nodes of a result that has a trace; ReadRun never does.
Result<void> LoadTrace(const RecordedRun& run, RecordedResult& result);

/// Appends records; safe to call from several threads. Records are in the file when a call returns; a thread
/// of its own syncs them to the disk right after.
class JournalWriter {
 public:
  /// Creates the journal of a folder that holds no run.
  static Result<std::unique_ptr<JournalWriter>> Create(std::shared_ptr<RunLock> lock,
                                                       const RunHeader& header);
  /// The same of the folder `dir`, which must exist.
  static Result<std::unique_ptr<JournalWriter>> Create(const std::filesystem::path& dir,
                                                       const RunHeader& header);
  /// Continues the journal that `run` was read from under this lock, since earlier reads may be out of date. A torn
  /// last line is cut off first. `header` describes the new run: new cases and backends are added to those that the run
  /// covered before.
  static Result<std::unique_ptr<JournalWriter>> Continue(std::shared_ptr<RunLock> lock,
                                                         const RecordedRun& run, const RunHeader& header);
  ~JournalWriter();

  Result<void> Backend(const std::string& backend, const std::map<std::string, std::string>& versions,
                       const std::map<std::string, std::vector<std::string>>& knobs = {});
  Result<void> Begin(const std::string& case_id, const std::string& backend);
  Result<void> Store(const std::string& case_id, const std::string& digest, const std::string& backend,
                     const Observation& observation);
  enum class Ending { kComplete, kInterrupted };
  /// `stopped_after`: see RecordedRun.
  Result<void> End(Ending ending, int64_t stopped_after = 0);

 private:
  class Impl;
  explicit JournalWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Makes the folder of a new run: `out`, or runs/<UTC>-<id> below the working directory, with the link
/// runs/latest.
Result<std::filesystem::path> MakeRunFolder(const std::filesystem::path& out, const std::string& id,
                                            const std::string& started);

}  // namespace ulpscope
