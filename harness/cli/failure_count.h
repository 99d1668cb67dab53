// FailureCount: how many results fail while a run goes on, for `--maxfail`. A cell is judged when the last of its results is there:
// that of its case, of its companions and of its opened program. It is judged as the report will judge it, alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/oracle.h"
#include "harness/record/journal.h"
#include "harness/workspace/workspace.h"
#include "oracles/oracle.h"

namespace ulpscope {

class FailureCount {
 public:
  /// `workspace` must outlive this. `cases`: all that is run, companions included.
  FailureCount(const Workspace& workspace, const std::vector<Case>& cases, int64_t seed, OracleEngine engine,
               int64_t most);

  /// When the run began, and what its backends are: expectations and deviations rest on both.
  void Began(const std::string& started) { started_ = started; }
  void SetVersions(const std::string& backend, const std::map<std::string, std::string>& versions) {
    versions_[backend] = versions;
  }
  /// A result of a case or of one of its companions.
  Result<void> Add(const Case& test_case, const std::string& backend, const Observation& observation);
  /// Counts from nothing again.
  void Forget() { failures_ = 0; }
  bool Enough() const { return failures_ >= most_; }
  int64_t failures() const { return failures_; }

 private:
  using Cell = std::pair<std::string, std::string>;

  const Workspace& workspace_;
  CaseIndex cases_;
  int64_t seed_;
  OracleEngine engine_;
  int64_t most_;
  int64_t failures_ = 0;
  std::string started_;
  std::map<std::string, std::map<std::string, std::string>> versions_;
  std::map<std::string, std::vector<std::string>> ids_;  ///< of a case: all that it is run as
  std::map<Cell, std::vector<RecordedResult>> waiting_;  ///< for the rest of their cell
};

}  // namespace ulpscope
