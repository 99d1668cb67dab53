// The history of results: an index over run folders, in SQLite. It holds nothing that is not in the folders,
// and is made anew from them at any time; a folder that has not changed since (its stamp) is not read twice.
//
// A night is the UTC day on which a run started. If two runs of one night both have a cell, the later one
// counts.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/result.h"

namespace ulpscope {

struct HistoryCell {
  std::string case_id, backend;
  std::string value = {};        ///< empty: the outcome, if there were no values
  std::string status, cls = {};  ///< "PASS", "f32>bf16"
};

struct HistoryRun {
  std::string folder;
  std::string stamp;  ///< changes whenever the folder's journal does
  std::string id, started, version;
  std::map<std::string, std::string> versions = {};  ///< backend -> "driver 550.54, torch 2.13.0"
  std::vector<HistoryCell> cells = {};
};

/// One cell on one night.
struct HistoryEntry {
  std::string backend, value, night, status, cls, versions, folder;
};

struct HistoryNight {
  std::string night;
  int64_t runs = 0, cells = 0;
  int64_t changed = 0;  ///< cells with another status or class than when last tested
};

class HistoryIndex {
 public:
  /// Opens or makes the index in `file`; a file that is no index of this form is replaced. ":memory:" keeps none.
  static Result<HistoryIndex> Open(const std::string& file);

  /// The known folders, with their stamps.
  Result<std::map<std::string, std::string>> Stamps() const;
  /// Replaces the index's entries for this folder.
  Result<void> Store(const HistoryRun& run);
  Result<void> Forget(const std::string& folder);

  /// By backend, value and night; one entry for each.
  Result<std::vector<HistoryEntry>> Of(const std::string& case_id) const;
  /// Days on which any run started, in order.
  Result<std::vector<HistoryNight>> Nights() const;
  /// The ids of all cases.
  Result<std::vector<std::string>> Cases() const;

 private:
  class Database;
  explicit HistoryIndex(std::shared_ptr<Database> database) : database_(std::move(database)) {}
  std::shared_ptr<Database> database_;
};

}  // namespace ulpscope
