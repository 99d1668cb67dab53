// What a run runs: which cases on which backends, found and checked before anything is started. `run` and `plan` select alike.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/casefile/prove.h"
#include "harness/cli/knob_sweep.h"
#include "harness/cli/workspace.h"
#include "harness/record/journal.h"

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

/// The options that say what is run; all but --shard and --lf, which make no plan. `selection` must stay where it is.
void AddSelectionOptions(CLI::App* command, Selection* selection);

/// Nothing where nothing is selected, which is said on stderr. Where the selection is that of a frozen plan, parts are cut as the plan
/// says; whether what is found is what was frozen is for the caller to ask (CheckAgainst).
Result<std::optional<Preparation>> Prepare(const Selection& selection, std::optional<FrozenPlan> frozen);

/// Cases, each with the backends that it runs on.
std::vector<PlannedCase> PlanOf(const std::vector<Case>& cases, const Preparation& prepared);

Steps StepsOf(const Selection& selection);

}  // namespace ulpscope
