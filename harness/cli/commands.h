// Every command of the command line. Each adds itself to the application and leaves its exit code behind.
#pragma once

#include <CLI/CLI.hpp>

namespace ulpscope {

void AddRunCommand(CLI::App& app, int& exit_code);
void AddListCommand(CLI::App& app, int& exit_code);
void AddExplainCommand(CLI::App& app, int& exit_code);
void AddJudgeCommand(CLI::App& app, int& exit_code);
void AddReportCommand(CLI::App& app, int& exit_code);
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
void AddShrinkCommand(CLI::App& app, int& exit_code);
void AddCompletionCommand(CLI::App& app, int& exit_code);
void AddManCommand(CLI::App& app, int& exit_code);

}  // namespace ulpscope
