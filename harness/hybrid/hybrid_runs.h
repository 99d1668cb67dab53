// The second part of a run: hybrids (harness/ledger/hybrid.h) of the cases whose backends differ, computed on a
// carrier, so that the judge can book each difference step by step. They lie in the folder `ledger` of the run folder,
// which is a run folder of its own.
//
// Its results belong to the case and backend whose values are given. Their values are called K/VALUE: VALUE with the
// given values up to step K; K = 0 is the carrier's own result. The observation "step/K" is the name of the step,
// "carrier" the carrier's backend string, the value again/K the carrier's result of that step from the same operands.
// For a step between two consecutive K, the given value equals the one that the carrier computes. If observing all
// steps changes a result, the given values are ones that the backend's program stores anyway, provided that it reports
// which and that observing them changes nothing: they are called stored/NAME. A carrier that is no backend of the run
// has a result of the instrumented program here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/ledger/book.h"
#include "harness/record/journal.h"
#include "harness/run/run_options.h"
#include "harness/workspace/workspace.h"

namespace ulpscope {

/// Whether settings that are known to make a backend compute the expected result (harness/words/remedies.h) are tried
/// if it differs.
enum class Remedies { kLeaveOut, kTry };

/// Runs the hybrids of every case of `run` that `workspace` holds, replacing those of an earlier session. `options` are
/// those of the run. An interrupted call ends early and keeps its results so far.
Result<void> RunHybrids(const RecordedRun& run, const Workspace& workspace, RunOptions options,
                        Remedies remedies, int interrupt_fd);

/// The hybrids that RunHybrids left in the folder of `run`; nothing if there are none.
Result<std::optional<RecordedRun>> ReadHybrids(const RecordedRun& run);

/// Puts the hybrids of `parts` (run folders) into that of `merged`, which has none. A case whose backends ran
/// in different parts gets none.
Result<void> MergeHybrids(const std::vector<std::string>& parts, const RecordedRun& merged,
                          const Registry& registry);

/// How the values of one backend come to be.
struct RecordedWalk {
  std::string carrier, left_out;  ///< one of them is empty
  std::map<std::string, TensorData> start;
  std::map<std::string, std::vector<LedgerWalk::Hybrid>> hybrids;  ///< by value
  std::map<std::string, TensorData> again;  ///< by step: the carrier's result from the same operands
  /// If observing all steps changes the result: the values that were observed instead, since the program
  /// stores them anyway. Empty if all steps were observed.
  std::map<std::string, TensorData> stored;
  /// "knob=value" -> the result of the program without instrumentation under that setting. Recorded as
  /// remedy/KNOB=VALUE/NAME.
  std::map<std::string, std::map<std::string, TensorData>> remedies;
};
/// `recorded`: with its tensors.
RecordedWalk WalkOf(const RecordedResult& recorded);

}  // namespace ulpscope
