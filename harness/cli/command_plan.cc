// ulpscope plan: freezes what a run would run, for machines that each run a part of it.
#include <fmt/format.h>

#include <memory>

#include "harness/base/build_info.h"
#include "harness/cli/cli.h"
#include "harness/cli/commands.h"
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

/// What each case took in an earlier run, all backends together.
Result<std::map<std::string, double>> TimesOf(const std::string& folder) {
  const auto run = ReadRun(folder, TensorLoading::kLater);
  if (!run) return tl::unexpected(run.error());
  std::map<std::string, double> times;
  for (const RecordedResult& result : run->results) {
    double took = 0;
    for (const char* part : {"exchange", "inputs"}) {
      const auto found = result.observation.durations_ms.find(part);
      if (found != result.observation.durations_ms.end()) took += found->second;
    }
    times[result.case_id] += took;
  }
  return times;
}

int RunPlanCommand(const PlanArguments& arguments) {
  int exit_code = 0;
  const auto prepared = Prepare(arguments.selection, std::nullopt, &exit_code);
  if (!prepared) return exit_code;
  FrozenPlan plan{
      .selection = arguments.selection,
      .version = std::string(Version()),
      .backends = {},
      .cases = PlanOf(WithCompanions(prepared->workspace.cases, StepsOf(arguments.selection)), *prepared),
      .milliseconds = {}};
  for (const BackendSpec& backend : prepared->backends) plan.backends.push_back(backend.Text());
  if (!arguments.durations.empty()) {
    auto times = TimesOf(arguments.durations);
    if (!times) return UsageError(times.error());
    plan.milliseconds = std::move(*times);
  }
  const std::string text = WriteFrozenPlan(plan);
  if (arguments.out == "-") {
    if (auto printed = PrintReport(text); !printed) return UsageError(printed.error());
    return 0;
  }
  if (auto written = WriteFile(arguments.out, text); !written) return UsageError(written.error());
  Print(
      fmt::format("{}  {} cases on {} backends\n", DigestOf(plan), plan.cases.size(), plan.backends.size()));
  return 0;
}

}  // namespace

void AddPlanCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand(
      "plan", "freeze cases, backends and knobs in a file that machines run parts of (run --plan)");
  AddSelectionOptions(command, &arguments->selection);
  command->add_option("-o,--out", arguments->out, "the plan; - is stdout")->required();
  command->add_option(
      "--durations", arguments->durations,
      "an earlier run: parts are cut so that each takes about as long, by what its cases took");
  command->callback([arguments, &exit_code] { exit_code = RunPlanCommand(*arguments); });
}

}  // namespace ulpscope
