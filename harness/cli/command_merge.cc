// ulpscope merge RUN... -o OUT: shards become the run that they are parts of.
#include <fmt/format.h>

#include <algorithm>

#include "harness/cli/commands.h"
#include "harness/cli/exit_codes.h"
#include "harness/cli/report_details.h"
#include "harness/cli/run_report_files.h"
#include "harness/cli/terminal.h"
#include "harness/hybrid/hybrid_runs.h"
#include "harness/judging/judged_run.h"
#include "harness/record/merge.h"
#include "harness/run/registry.h"

namespace ulpscope {
namespace {

struct MergeArguments {
  std::vector<std::string> runs;
  std::string out;
  bool quiet = false;
  ReportOutputs outputs;
};

void List(const std::string& what, const std::vector<std::string>& lines) {
  constexpr size_t kMostLines = 20;
  for (size_t i = 0; i < std::min(lines.size(), kMostLines); ++i) PrintError(what + ": " + lines[i]);
  if (lines.size() > kMostLines) PrintError(fmt::format("{}: {} more", what, lines.size() - kMostLines));
}

Result<int> RunMerge(const MergeArguments& arguments) {
  ULPSCOPE_TRY(CheckOutputs(arguments.outputs, arguments.out));
  const auto merged = ULPSCOPE_TRY(MergeRuns(
      std::vector<std::filesystem::path>(arguments.runs.begin(), arguments.runs.end()), arguments.out));
  List("conflict", merged.conflicts);
  if (!merged.conflicts.empty()) {
    PrintError(fmt::format("ulpscope: {} conflicts, nothing was written", merged.conflicts.size()));
    return kExitIncomplete;
  }
  const auto whole = ULPSCOPE_TRY(ReadRun(arguments.out, TensorLoading::kLater));
  const auto registry = ULPSCOPE_TRY(Registry::LoadDefault());
  ULPSCOPE_TRY(MergeHybrids(arguments.runs, whole, registry));
  const auto judged = ULPSCOPE_TRY(JudgeRecorded(arguments.out, {}, Source::kRecorded));
  const ReportDetails details = DetailsOf(judged->run, judged->workspace);
  ULPSCOPE_TRY(WriteReportFiles(judged->report, details, arguments.out, arguments.outputs));
  if (!arguments.outputs.TakesStdout()) {
    ConsoleOptions console = DetectConsole();
    if (arguments.quiet) console.verbosity = ConsoleOptions::Verbosity::kQuiet;
    if (!judged->run.header.swept.empty()) console.subject = ConsoleOptions::Subject::kKnobs;
    Print(WriteConsole(judged->report, console));
  }
  List("missing", merged.gaps);
  if (!merged.gaps.empty()) {
    PrintError(fmt::format(
        "ulpscope: {} results of the plan are missing; {} are in {}, and the rest can be merged into it",
        merged.gaps.size(), merged.results, arguments.out));
    return kExitIncomplete;
  }
  return SaidExitCode(judged->report, Interruption::kNone);
}

}  // namespace

void AddMergeCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("merge", "put the shards of a run together");
  MergeArguments* arguments = OptionsOf(command, exit_code, RunMerge);
  command->add_option("runs", arguments->runs, "run folders of `run --shard i/n`, or of earlier merges")
      ->required();
  command->add_option("-o,--out", arguments->out, "the folder of the merged run")->required();
  AddReportOptions(command, &arguments->outputs);
  command->add_flag("-q,--quiet", arguments->quiet, "only failures and counts");
  command->footer(
      "Exits 6 where a result of the plan is missing (the rest is written) or where the runs contradict each "
      "other (nothing is),\n"
      "else as the whole run would have.");
}

}  // namespace ulpscope
