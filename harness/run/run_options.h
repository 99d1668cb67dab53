// RunOptions: the conditions of a run, without its cases and backends.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/record/journal.h"

namespace ulpscope {

struct RunOptions {
  int jobs = 1;                    ///< workers at a time; results do not depend on it
  int repeat = 2;                  ///< runs of a completed case, compared byte for byte
  double timeout_s = 120;          ///< for one run of one case
  double startup_timeout_s = 120;  ///< for the hello of a worker
  int64_t seed = 0;
  bool trace = true;               ///< request casts
  std::vector<int> schedule = {};  ///< of timed runs: wait, warm-up, active; empty: the adapter's default
  bool in_step =
      false;  ///< a worker begins nothing before its last result was observed: for RunObserver::StopAfter
  bool resume = false;        ///< keep the completed results that `out` already holds
  std::filesystem::path out;  ///< run folder; empty: runs/<UTC>-<id> with the link runs/latest
  int64_t memory_budget_bytes = int64_t{8} << 30;    ///< resident memory of a worker and its children
  int recycle_after = 500;                           ///< cases until a worker is replaced
  std::map<std::string, std::string> not_installed;  ///< backend -> how to install it; for the record alone
  std::map<std::string, std::string> knobs;  ///< --knob: beats a case's knobs, is beaten by the backend's
  std::map<std::string, std::vector<std::string>> swept;  ///< see RunHeader
  std::vector<PlannedCase> plan = {};                     ///< see RunHeader
};

}  // namespace ulpscope
