// Results of the oracle and the classifier on a run's observations, in the run folder next to its journal.
//
//   {"crc":"1a2b3c4d","record":{"type":"run", ...}}         which run these lines belong to
//   {"crc":"...","record":{"type":"classified", ...}}       one result: its case, digest, backend and values
//   {"crc":"...","record":{"type":"oracle", ...}}           the engine, and what it did
//
// `ulpscope run` writes a line as soon as a result is classified, and every later command reads it; only `ulpscope
// judge` classifies again, and replaces the file. Facts and judgements stay apart: the journal holds what happened, and
// is complete without this file. Lines are as in the journal, and a torn last one is tolerated. A later line for the
// same (case, backend) replaces an earlier one.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "harness/base/result.h"
#include "harness/model/classification.h"
#include "harness/model/reference.h"
#include "harness/record/file_bytes.h"
#include "harness/record/journal.h"
#include "harness/record/run_file.h"

namespace ulpscope {

/// Results of the oracle and the classifier on one observation, or the fault of ours that prevented them.
struct Classified {
  std::map<std::string, Classification> values = {};
  /// Elements that were looked at in addition to the sample, by value: those in which backends differ. A caller that
  /// knows of other such elements classifies again.
  std::map<std::string, std::vector<int64_t>> looked_at = {};
  std::string fault = {};
};

class RecordedClassifications;

struct ClassifiedRun {
  std::map<std::pair<std::string, std::string>, Classified> results;  ///< by (case, backend)
  std::shared_ptr<const RecordedClassifications> recorded;  ///< results missing in `results` may be here
  std::string engine;                                       ///< of the oracle: "fast" or "boost"
  OracleCounts counts;
};

/// The recorded classifications of `run`'s cases in the version that was run; empty without such a file.
Result<ClassifiedRun> ReadClassified(const RecordedRun& run);
/// The same, each result read at its first use.
Result<ClassifiedRun> OpenClassified(const RecordedRun& run);
/// Only those of one case and its auxiliary inputs: the rest of a long file is not even parsed.
Result<ClassifiedRun> ReadClassifiedOf(const RecordedRun& run, const std::string& case_id);

/// Places of a run's classifications in its file. A run of ten thousands of cases excludes a million models,
/// so memory holds the places alone.
class RecordedClassifications {
 public:
  /// `file` stays open, so replacing it in the folder has no effect here.
  explicit RecordedClassifications(FileHandle file) : file_(std::move(file)) {}
  /// Reads the file through once, held against its checksums. Engine and counts go into `classified`.
  Result<void> Index(const RecordedRun& run, ClassifiedRun* classified);

  bool Has(const std::string& case_id, const std::string& backend) const;
  /// The classification of a result that it has; thread-safe.
  Result<Classified> Read(const std::string& case_id, const std::string& backend) const;

 private:
  struct Place {
    int64_t offset = 0;
    size_t size = 0;
    int line = 0;
  };
  FileHandle file_;
  std::map<std::pair<std::string, std::string>, Place> places_;
};

/// Replaces the file in one step, for who holds the run's lock. Faults are left out: they are ours, and may be mended.
Result<void> WriteClassified(const RecordedRun& run, const ClassifiedRun& classified);

/// Appends to the file. The caller holds the run's lock; lines of a run other than `run_id` are discarded.
class ClassifiedWriter {
 public:
  static Result<ClassifiedWriter> Open(const std::filesystem::path& dir, const std::string& run_id);
  Result<void> Store(const std::string& case_id, const std::string& digest, const std::string& backend,
                     const Classified& classified) const;
  Result<void> Oracle(const std::string& engine, const OracleCounts& counts) const;

 private:
  explicit ClassifiedWriter(FileHandle file) : file_(std::move(file)) {}
  FileHandle file_;
};

}  // namespace ulpscope
