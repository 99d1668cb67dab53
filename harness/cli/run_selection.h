// Selects cases and backends, for `run` and `plan` alike: found and checked before anything is started.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/casefile/prove.h"
#include "harness/cli/knob_sweep.h"
#include "harness/record/journal.h"
#include "harness/workspace/workspace.h"

namespace ulpscope {

/// As it stands on the command line.
struct Selection {
  std::vector<std::string> cases;
  std::string backends, expression, tags, shard;
  std::vector<std::string> knobs, adapters;
  int repeat = 2;
  int64_t seed = 0;
  bool last_failed = false, no_trace = false, no_steps = false, knob_sweep = false;
};

/// A selection with what it came to when it was made: `ulpscope plan`.
struct FrozenPlan {
  Selection selection;
  std::string version;                     ///< of ulpscope
  std::vector<std::string> backends = {};  ///< canonical backend strings
  std::vector<PlannedCase> cases;          ///< companions included
  std::map<std::string, double> milliseconds =
      {};  ///< case id -> what it took in an earlier run; parts are cut by it
};

struct Preparation {
  Selection selection;  ///< that of the plan, where there is one
  std::optional<FrozenPlan> frozen;
  Workspace workspace;
  std::vector<BackendSpec> backends = {};
  std::map<std::string, std::string> not_installed = {};
  KnobSweep sweep = {};
  std::vector<PlannedCase> plan = {};  ///< of a shard, of a sweep and of a frozen plan: see RunHeader
};

/// The options that select a run, without --shard and --lf, which make no plan. `selection` must not move.
void AddSelectionOptions(CLI::App* command, Selection* selection);

/// Nothing, with a line on stderr, if nothing is selected. A frozen plan's selection keeps the plan's parts;
/// the caller checks that its cases are found unchanged (CheckAgainst). `resumed`: the run that is continued,
/// whose cases and backends are taken if the selection names none (harness/cli/resumed_run.h).
Result<std::optional<Preparation>> Prepare(const Selection& selection, std::optional<FrozenPlan> frozen,
                                           const RecordedRun* resumed = nullptr);

/// Whether an option stands on the command line.
using Said = std::function<bool(const char* option)>;

/// The run in `dir`, which is continued; nothing if there is none. That is an error if `selection` does not
/// name what to run instead: a continuation never means the whole suite.
Result<std::optional<RecordedRun>> ReadToResume(const std::string& dir, const Selection& selection);

/// Takes from the continued run the seed, repeats and the like that the command line does not give.
void TakeUnsaid(const RecordedRun& run, const Said& said, Selection* selection);

/// Cases, each with the backends that it runs on.
std::vector<PlannedCase> PlanOf(const std::vector<Case>& cases, const Preparation& prepared);

Steps StepsOf(const Selection& selection);

}  // namespace ulpscope
