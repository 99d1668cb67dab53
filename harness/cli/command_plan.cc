// ulpscope plan: freezes what a run would run, for machines that each run a part of it.
#include <fmt/format.h>

#include "harness/base/build_info.h"
#include "harness/cli/commands.h"
#include "harness/cli/exit_codes.h"
#include "harness/cli/frozen_plan.h"
#include "harness/cli/run_report_files.h"
#include "harness/cli/terminal.h"
#include "harness/record/observation_json.h"

namespace ulpscope {
namespace {

struct PlanArguments {
  Selection selection;
  std::string out, durations;
};

/// The time of each case in an earlier run, all backends together.
Result<std::map<std::string, double>> TimesOf(const std::string& folder) {
  const auto run = ULPSCOPE_TRY(ReadRun(folder, TensorLoading::kLater));
  std::map<std::string, double> times;
  for (const RecordedResult& result : run.results) {
    double took = 0;
    for (const char* part : {"exchange", "inputs"}) {
      const auto found = result.observation.durations_ms.find(part);
      if (found != result.observation.durations_ms.end()) took += found->second;
    }
    times[result.case_id] += took;
  }
  return times;
}

Result<int> RunPlanCommand(const PlanArguments& arguments) {
  const auto prepared = ULPSCOPE_TRY(Prepare(arguments.selection, std::nullopt));
  if (!prepared) return kExitNothing;
  FrozenPlan plan{
      .selection = arguments.selection,
      .version = std::string(Version()),
      .cases = PlanOf(WithCompanions(prepared->workspace.cases, StepsOf(arguments.selection)), *prepared)};
  for (const BackendSpec& backend : prepared->backends) plan.backends.push_back(backend.Text());
  if (!arguments.durations.empty()) {
    plan.milliseconds = ULPSCOPE_TRY(TimesOf(arguments.durations));
  }
  const std::string text = WriteFrozenPlan(plan);
  if (arguments.out == "-") {
    ULPSCOPE_TRY(PrintReport(text));
    return 0;
  }
  ULPSCOPE_TRY(WriteFile(arguments.out, text));
  Print(
      fmt::format("{}  {} cases on {} backends\n", DigestOf(plan), plan.cases.size(), plan.backends.size()));
  return 0;
}

}  // namespace

void AddPlanCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "plan", "freeze cases, backends and knobs in a file that machines run parts of (run --plan)");
  PlanArguments* arguments = OptionsOf(command, exit_code, RunPlanCommand);
  AddSelectionOptions(command, &arguments->selection);
  command->add_option("-o,--out", arguments->out, "the plan; - is stdout")->required();
  command->add_option(
      "--durations", arguments->durations,
      "an earlier run: parts are cut so that each takes about as long, by what its cases took");
}

}  // namespace ulpscope
