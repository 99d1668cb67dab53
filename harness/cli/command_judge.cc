// ulpscope judge and ulpscope report: a recorded run, judged again, rendered again. Neither starts a backend.
#include <memory>

#include "harness/cli/cli.h"
#include "harness/cli/commands.h"
#include "harness/cli/judged_run.h"
#include "harness/cli/report_details.h"
#include "harness/cli/run_report_files.h"
#include "harness/cli/terminal.h"
#include "oracles/oracle.h"

namespace ulpscope {
namespace {

struct JudgeArguments {
  std::string run;
  std::vector<std::string> cases;
  ReportOutputs outputs;
};

Result<std::unique_ptr<JudgedRun>> Judge(const JudgeArguments& arguments, Source source) {
  if (auto checked = CheckOutputs(arguments.outputs); !checked) return Fail(checked.error());
  return JudgeRecorded(arguments.run, arguments.cases, source);
}

/// Writes what was asked for, and into `folder` what a run folder holds.
Result<void> WriteJudged(const JudgedRun& judged, const std::string& folder, const ReportOutputs& outputs) {
  return WriteReportFiles(judged.report, DetailsOf(judged.run, judged.workspace), folder, outputs);
}

int RunJudgeCommand(const JudgeArguments& arguments) {
  BindOracleLibraries();
  const auto judged = Judge(arguments, Source::kAnew);
  if (!judged) return UsageError(judged.error());
  if (auto written = WriteJudged(**judged, arguments.run, arguments.outputs); !written)
    return UsageError(written.error());
  if (!arguments.outputs.TakesStdout()) Print(WriteConsole((*judged)->report, DetectConsole()));
  return ExitCode((*judged)->report, Interruption::kNone);
}

int RunReportCommand(const JudgeArguments& arguments) {
  const auto judged = Judge(arguments, Source::kRecorded);
  if (!judged) return UsageError(judged.error());
  if (auto written = WriteJudged(**judged, "", arguments.outputs); !written)
    return UsageError(written.error());
  if (!arguments.outputs.Any()) Print(WriteConsole((*judged)->report, DetectConsole()));
  return ExitCode((*judged)->report, Interruption::kNone);
}

CLI::App* AddCommand(CLI::App& app, const std::string& name, const std::string& about,
                     JudgeArguments& arguments) {
  CLI::App* command = app.add_subcommand(name, about);
  command->add_option("run", arguments.run, "a run folder")->required();
  command->add_option("cases", arguments.cases,
                      "judge these files in the place of the cases as they were run");
  AddReportOptions(command, &arguments.outputs);
  return command;
}

}  // namespace

void AddJudgeCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<JudgeArguments>();
  CLI::App* command =
      AddCommand(app, "judge", "classify and judge a recorded run anew, without its backends", *arguments);
  command->callback([arguments, &exit_code] { exit_code = RunJudgeCommand(*arguments); });
}

void AddReportCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<JudgeArguments>();
  CLI::App* command = AddCommand(app, "report", "render a recorded run", *arguments);
  command->callback([arguments, &exit_code] { exit_code = RunReportCommand(*arguments); });
}

}  // namespace ulpscope
