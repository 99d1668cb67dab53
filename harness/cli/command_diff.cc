// ulpscope diff A B: what changed from one recorded run to another.
#include <memory>
#include <set>
#include <string>

#include "harness/cli/cli.h"
#include "harness/cli/commands.h"
#include "harness/cli/exit_codes.h"
#include "harness/cli/judged_run.h"
#include "harness/cli/terminal.h"
#include "reports/run_diff.h"

namespace ulpscope {
namespace {

struct DiffArguments {
  std::string before, after;
  bool verbose = false;
};

/// Cases of both runs with another program or other inputs.
std::set<std::string> Rewritten(const RunHeader& before, const RunHeader& after) {
  std::set<std::string> ids;
  for (const auto& [id, digest] : after.digests) {
    const auto was = before.digests.find(id);
    if (was != before.digests.end() && was->second != digest) ids.insert(id);
  }
  return ids;
}

int RunDiffCommand(const DiffArguments& arguments) {
  const auto before = JudgeRecorded(arguments.before, {}, Source::kRecorded);
  if (!before) return UsageError(before.error());
  const auto after = JudgeRecorded(arguments.after, {}, Source::kRecorded);
  if (!after) return UsageError(after.error());
  const RunDiff diff = CompareRuns((*before)->report, (*after)->report,
                                   Rewritten((*before)->run.header, (*after)->run.header));
  if (diff.compared == 0) {
    PrintError(Problem("the runs have no result in common", arguments.before + " and " + arguments.after,
                       "two runs of the same cases on the same backends"));
    return kExitNothing;
  }
  Print(WriteRunDiff(diff, arguments.verbose ? DiffLength::kWhole : DiffLength::kBrief,
                     DetectConsole().columns));
  return HasWorse(diff) ? kExitNot : 0;
}

}  // namespace

void AddDiffCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<DiffArguments>();
  CLI::App* command = app.add_subcommand("diff", "what changed between two recorded runs");
  command->add_option("before", arguments->before, "a run folder")->required();
  command->add_option("after", arguments->after, "a later one")->required();
  command->add_flag("-v,--verbose", arguments->verbose, "every change, not the first twenty of each part");
  command->footer(
      "Exits 1 where something changed for the worse: a status fell or what ran is skipped, a value keeps "
      "fewer bits or no "
      "model\nexplains it any more, a divergence of class is new. Order, conversions and time are told and "
      "fail nothing. 5: "
      "no result in common.");
  command->callback([arguments, &exit_code] { exit_code = RunDiffCommand(*arguments); });
}

}  // namespace ulpscope
