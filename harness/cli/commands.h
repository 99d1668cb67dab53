// Every command of the command line. Each adds itself to the application and leaves its exit code behind.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/result.h"

namespace ulpscope {

/// The exit code of a command; where it failed, that of wrong usage, and its error on stderr.
int ExitCodeOf(const Result<int>& ended);

/// The arguments that the options of `command` fill in; `command` owns them, and calls `run` with them.
template <class Arguments>
Arguments* OptionsOf(CLI::App* command, int& exit_code, Result<int> (*run)(const Arguments&)) {
  const auto arguments = std::make_shared<Arguments>();
  command->callback([arguments, run, &exit_code] { exit_code = ExitCodeOf(run(*arguments)); });
  return arguments.get();
}

/// --adapter, as often as there are some.
void AddAdapterOption(CLI::App* command, std::vector<std::string>* adapters);

void AddRunCommand(CLI::App& app, int& exit_code);
void AddListCommand(CLI::App& app, int& exit_code);
void AddExplainCommand(CLI::App& app, int& exit_code);
void AddJudgeCommand(CLI::App& app, int& exit_code);
void AddReportCommand(CLI::App& app, int& exit_code);
void AddCompareCommand(CLI::App& app, int& exit_code);
void AddDiffCommand(CLI::App& app, int& exit_code);
void AddMergeCommand(CLI::App& app, int& exit_code);
void AddBaselineCommand(CLI::App& app, int& exit_code);
void AddHistoryCommand(CLI::App& app, int& exit_code);
void AddLintCommand(CLI::App& app, int& exit_code);
void AddSchemaCommand(CLI::App& app, int& exit_code);
void AddDoctorCommand(CLI::App& app, int& exit_code);
void AddNewCommand(CLI::App& app, int& exit_code);
void AddPlanCommand(CLI::App& app, int& exit_code);
void AddReproCommand(CLI::App& app, int& exit_code);
void AddProbeCommand(CLI::App& app, int& exit_code);
void AddTraceCommand(CLI::App& app, int& exit_code);
void AddShrinkCommand(CLI::App& app, int& exit_code);
void AddCompletionCommand(CLI::App& app, int& exit_code);
void AddManCommand(CLI::App& app, int& exit_code);

}  // namespace ulpscope
