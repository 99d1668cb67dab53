// What the oracle and the classifier said of a run's observations, in the run folder beside its journal.
//
//   {"crc":"1a2b3c4d","record":{"type":"run", ...}}         which run these lines belong to
//   {"crc":"...","record":{"type":"classified", ...}}       one result: its case, digest, backend and values
//   {"crc":"...","record":{"type":"oracle", ...}}           the engine, and what it did
//
// `ulpscope run` writes a line as soon as a result is classified, and every later command reads it; only
// `ulpscope judge` classifies anew, and replaces the file. Facts and judgements stay apart: the journal says
// what happened, and is whole without this file. Lines are as in the journal, and a torn last one is
// forgiven. A later line for the same (case, backend) replaces an earlier one.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "harness/base/result.h"
#include "harness/model/classification.h"
#include "harness/model/reference.h"
#include "harness/record/journal.h"

namespace ulpscope {

/// What the oracle and the classifier say about one observation, or what of ours broke on the way.
struct Classified {
  std::map<std::string, Classification> values = {};
  std::string fault;
};

class RecordedClassifications;

struct ClassifiedRun {
  std::map<std::pair<std::string, std::string>, Classified> results;  ///< by (case, backend)
  std::shared_ptr<const RecordedClassifications> recorded;  ///< what `results` lacks may stand there
  std::string engine;                                       ///< of the oracle: "fast" or "boost"
  OracleCounts counts;
};

/// What the folder of `run` holds about its cases as they were run; without such a file, nothing.
Result<ClassifiedRun> ReadClassified(const RecordedRun& run);
/// The same, each result read when it is asked for.
Result<ClassifiedRun> OpenClassified(const RecordedRun& run);
/// Of one case and its companions alone: the rest of a long file is not even parsed.
Result<ClassifiedRun> ReadClassifiedOf(const RecordedRun& run, const std::string& case_id);

/// Where the classifications of a run stand in its file. A run of ten thousands of cases excludes a million models, so that what
/// lies in memory is their places alone.
class RecordedClassifications {
 public:
  explicit RecordedClassifications(std::filesystem::path file) : file_(std::move(file)) {}
  /// Reads the file through once, held against its checksums. Engine and counts go into `classified`.
  Result<void> Index(const RecordedRun& run, ClassifiedRun* classified);

  bool Has(const std::string& case_id, const std::string& backend) const;
  /// Of a result that it has; safe to call from several threads.
  Result<Classified> Read(const std::string& case_id, const std::string& backend) const;

 private:
  struct Place {
    int64_t offset = 0;
    size_t size = 0;
    int line = 0;
  };
  std::filesystem::path file_;
  std::map<std::pair<std::string, std::string>, Place> places_;
};

/// Replaces the file in one step. Faults are left out: they are ours, and may be mended.
Result<void> WriteClassified(const RecordedRun& run, const ClassifiedRun& classified);

/// Appends to the file; lines of another run than `run_id` make place.
class ClassifiedWriter {
 public:
  static Result<ClassifiedWriter> Open(const std::filesystem::path& dir, const std::string& run_id);
  Result<void> Store(const std::string& case_id, const std::string& digest, const std::string& backend,
                     const Classified& classified) const;
  Result<void> Oracle(const std::string& engine, const OracleCounts& counts) const;

 private:
  explicit ClassifiedWriter(std::filesystem::path file) : file_(std::move(file)) {}
  Result<void> Append(const std::string& line) const;
  std::filesystem::path file_;
};

}  // namespace ulpscope
