// ulpscope diff A B: what changed from one recorded run to another.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/cli/commands.h"
#include "harness/cli/exit_codes.h"
#include "harness/cli/terminal.h"
#include "harness/judging/judged_run.h"
#include "reports/environments.h"
#include "reports/run_diff.h"

namespace ulpscope {
namespace {

struct DiffArguments {
  std::string before, after;
  std::vector<std::string> environments;  ///< none, or two
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

/// The part of a report that an environment computed.
Result<RunReport> Environment(const RunReport& report, const std::string& name) {
  const std::vector<std::string> names = EnvironmentsOf(report);
  if (!Contains(names, name))
    return Fail(Problem("the run has no column in environment", "'" + name + "'", Join(names, ", "),
                        DidYouMean(name, names)));
  return OfEnvironment(report, name);
}

Result<int> RunDiffCommand(const DiffArguments& arguments) {
  const auto before = ULPSCOPE_TRY(JudgeRecorded(arguments.before, {}, Source::kRecorded));
  if (arguments.after.empty() && arguments.environments.empty())
    return Fail(Problem("diff compares two runs", {}, "a second run folder, or --env FROM,TO"));
  // Two environments of one run: it is read once.
  const auto second =
      ULPSCOPE_TRY(arguments.after.empty() ? Result<std::unique_ptr<JudgedRun>>()
                                           : JudgeRecorded(arguments.after, {}, Source::kRecorded));
  const JudgedRun& after = arguments.after.empty() ? *before : *second;
  const std::set<std::string> rewritten = Rewritten(before->run.header, after.run.header);
  RunDiff diff;
  if (arguments.environments.empty()) {
    diff = CompareRuns(before->report, after.report, rewritten);
  } else {
    const auto was = ULPSCOPE_TRY(Environment(before->report, arguments.environments.front()));
    const auto now = ULPSCOPE_TRY(Environment(after.report, arguments.environments.back()));
    diff = CompareRuns(WithBackendsOf(was, now), WithBackendsOf(now, was), rewritten);
  }
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
  CLI::App* command =
      app.add_subcommand("diff", "what changed between two recorded runs, or two environments of one");
  DiffArguments* arguments = OptionsOf(command, exit_code, RunDiffCommand);
  command->add_option("before", arguments->before, "a run folder")->required();
  command->add_option("after", arguments->after, "a later one; may be left out with --env");
  command
      ->add_option("--env", arguments->environments,
                   "FROM,TO: compare these Python environments; columns that name none are 'default'")
      ->delimiter(',')
      ->expected(2);
  command->add_flag("-v,--verbose", arguments->verbose, "every change, not the first twenty of each part");
  command->footer(
      "Exits 1 where something changed for the worse: a status fell or what ran is skipped, a value keeps "
      "fewer bits or no "
      "model\nexplains it any more, a divergence of class is new. Order, conversions and time are told and "
      "fail nothing. 5: "
      "no result in common.");
}

}  // namespace ulpscope
