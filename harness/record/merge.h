// Merging run folders: the shards of one plan become the run that they are parts of.
//
// The plan is every case of the whole run with its digest, on every backend; each shard carries it
// (RunHeader::plan). Runs of one plan, seed, version and environment can be merged, in any order, any number
// of times, and part by part: the order and the grouping of the arguments change no byte of what is written,
// and a run merged with itself is that run. A planned cell that did not run is a gap; two results of one
// (case, backend) that differ in more than times are a conflict. If two differ in times alone, the one with
// the lesser record is kept, so that the choice is the same everywhere.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/result.h"
#include "harness/record/run_file.h"

namespace ulpscope {

struct Merged {
  size_t runs = 0, results = 0;
  std::vector<std::string>
      gaps;  ///< "seeds/x on jax": of the plan, with no result; the merged run says that it is not complete
  std::vector<std::string> conflicts;  ///< with these nothing is written
  std::shared_ptr<RunLock> lock = {};  ///< of the merged run, until its reports are written
};

/// Writes journal, tensors, traces, cases and classifications of `runs` to `out`, which must hold no run. Fails if a
/// folder cannot be read or written.
Result<Merged> MergeRuns(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& out);

}  // namespace ulpscope
