// The cases of a run, in its folder beside the journal: a record can be judged, explained and repeated where nobody
// has the file that a case came from, or where that file says something else by now.
//
//   {"crc":"1a2b3c4d","record":{"type":"run", ...}}    which run these lines belong to
//   {"crc":"...","record":{"type":"case", ...}}        one case: its id, its digest, its YAML, how to select it
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "harness/base/result.h"

namespace ulpscope {

struct RecordedCase {
  std::string digest;    ///< CaseDigest, as in the journal's header
  std::string yaml;      ///< a case file with just this case
  std::string selector;  ///< what to write after `ulpscope run` where its file is
};

/// By id; empty where the folder has none, or those of another run.
Result<std::map<std::string, RecordedCase>> ReadRecordedCases(const std::filesystem::path& dir,
                                                              const std::string& run_id);

/// Adds to those that the folder holds of this run already, and replaces what has changed.
Result<void> WriteRecordedCases(const std::filesystem::path& dir, const std::string& run_id,
                                const std::map<std::string, RecordedCase>& cases);

}  // namespace ulpscope
