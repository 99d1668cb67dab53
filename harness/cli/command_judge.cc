// ulpscope judge and ulpscope report: a recorded run, judged again, rendered again. Neither starts a backend.
#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/report_details.h"
#include "harness/cli/run_report_files.h"
#include "harness/cli/terminal.h"
#include "harness/judging/judged_run.h"
#include "harness/workspace/time_limit.h"
#include "oracles/oracle.h"

namespace ulpscope {
namespace {

struct JudgeArguments {
  std::string run;
  std::vector<std::string> cases;
  double minutes = 0;  ///< 0: without a limit
  ReportOutputs outputs;
};

Result<std::unique_ptr<JudgedRun>> Judge(const JudgeArguments& arguments, Source source) {
  ULPSCOPE_TRY(CheckOutputs(arguments.outputs));
  return JudgeRecorded(arguments.run, arguments.cases, source, arguments.minutes);
}

/// Writes the requested files, and into `folder` those that a run folder holds.
Result<void> WriteJudged(const JudgedRun& judged, const std::string& folder, const ReportOutputs& outputs) {
  return WriteReportFiles(judged.report, DetailsOf(judged.run, judged.workspace), folder, outputs);
}

Result<int> RunJudgeCommand(const JudgeArguments& arguments) {
  BindOracleLibraries();
  const auto judged = ULPSCOPE_TRY(Judge(arguments, Source::kAnew));
  ULPSCOPE_TRY(WriteJudged(*judged, judged->run.dir.string(), arguments.outputs));
  if (!arguments.outputs.TakesStdout()) Print(WriteConsole(judged->report, DetectConsole()));
  return SaidExitCode(judged->report, Interruption::kNone);
}

Result<int> RunReportCommand(const JudgeArguments& arguments) {
  const auto judged = ULPSCOPE_TRY(Judge(arguments, Source::kRecorded));
  ULPSCOPE_TRY(WriteJudged(*judged, "", arguments.outputs));
  if (!arguments.outputs.Any()) Print(WriteConsole(judged->report, DetectConsole()));
  return SaidExitCode(judged->report, Interruption::kNone);
}

void AddOptions(CLI::App* command, JudgeArguments* arguments) {
  command->add_option("run", arguments->run, "a run folder")->required();
  command->add_option("cases", arguments->cases,
                      "judge these files in the place of the cases as they were run");
  AddReportOptions(command, &arguments->outputs);
}

}  // namespace

void AddJudgeCommand(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("judge", "classify and judge a recorded run anew, without its backends");
  JudgeArguments* arguments = OptionsOf(command, exit_code, RunJudgeCommand);
  AddOptions(command, arguments);
  command
      ->add_option("--minutes", arguments->minutes,
                   "what is judged by then is the answer; the report lists the rest, and the exit code is 6")
      ->check(CLI::Validator(CheckMinutes, "MINUTES"));
}

void AddReportCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("report", "render a recorded run");
  AddOptions(command, OptionsOf(command, exit_code, RunReportCommand));
}

}  // namespace ulpscope
