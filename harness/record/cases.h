// The cases of a run, in its folder beside the journal: a record can be judged, explained and repeated even
// if the file that a case came from is missing, or has changed since.
//
//   {"crc":"1a2b3c4d","record":{"type":"run", ...}}    which run these lines belong to
//   {"crc":"...","record":{"type":"case", ...}}        one case: its id, its digest, its YAML, how to select it
//
// A case that has changed since stands there as it was and as it is: the journal's header shows, by their
// digest, which of them its results are about. So it does not matter which of the two files a run that was
// killed had written.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "harness/base/result.h"

namespace ulpscope {

struct RecordedCase {
  std::string yaml;      ///< a case file with just this case
  std::string selector;  ///< the argument of `ulpscope run` if its file is there
  /// The folder in the run folder that holds its files of tensors; empty: it has none, or they lie in the run folder itself.
  std::string inputs = {};
  SourcePos at = {};                          ///< its place; the file as in that run's command line
  std::map<std::string, int64_t> lines = {};  ///< value -> the line of the step that gives it
};

/// By id and digest (CaseDigest, as in the journal's header).
using RecordedCases = std::map<std::pair<std::string, std::string>, RecordedCase>;

/// Empty if the folder has none, or those of another run.
Result<RecordedCases> ReadRecordedCases(const std::filesystem::path& dir, const std::string& run_id);

/// Adds cases to those of this run in the folder. The caller holds the run's lock.
Result<void> WriteRecordedCases(const std::filesystem::path& dir, const std::string& run_id,
                                const RecordedCases& cases);

/// Limit for one file of tensors: the one that a fill has (harness/casefile/fill_data.cc).
inline constexpr int64_t kMostInputBytes = int64_t{1} << 30;

/// Stores files that lie next to a case's file, by name, in a run folder: in a subfolder named after their contents, so
/// that two cases never disagree about a name. Returns the subfolder's name (RecordedCase::inputs).
Result<std::string> KeepInputs(const std::filesystem::path& dir,
                               const std::map<std::string, std::string>& files);
/// The same files into another run folder.
Result<void> CopyInputs(const std::filesystem::path& from, const std::filesystem::path& to,
                        const std::string& inputs);

}  // namespace ulpscope
