// ulpscope explain ID[@BACKEND]: the derivation of a result, from a recorded run or from one made now.
#include <fmt/format.h>

#include <optional>

#include "harness/casefile/prove.h"
#include "harness/cli/commands.h"
#include "harness/cli/report_details.h"
#include "harness/cli/terminal.h"
#include "harness/judging/run_judge.h"
#include "harness/workspace/recorded_run.h"
#include "reports/explain.h"
#include "reports/explain_brief.h"

namespace ulpscope {
namespace {

struct ExplainArguments {
  std::string what, run;
  std::vector<std::string> adapters;
  std::optional<int64_t> seed;
  bool verbose = false;
};

/// The record cut down to what is explained.
void Keep(RecordedRun* run, const ResultName& target) {
  run->header.cases = {target.id};
  std::erase_if(run->results, [&](const RecordedResult& result) {
    return result.case_id != target.id && BaseOf(result.case_id) != target.id;
  });
}

std::string Explain(const RunReport& report, const RecordedRun& run, const Case& test_case,
                    const std::string& backend, const ConsoleOptions& options) {
  std::vector<const CaseResult*> results;
  for (const auto& result : report.results) {
    if (backend.empty() ? result.status != Status::kSkip : result.backend == backend)
      results.push_back(&result);
  }
  Explanation explanation = ExplanationOf(test_case);
  if (results.size() > 1 && options.verbosity != ConsoleOptions::Verbosity::kVerbose)
    return WriteCaseOverview(report, test_case.id, explanation, options);
  std::string text;
  for (const CaseResult* result : results) {
    explanation.trace.clear();
    if (const RecordedResult* found = run.Find(result->id, result->backend)) {
      RecordedResult record = *found;
      if (LoadTrace(run, record)) explanation.trace = std::move(record.observation.trace);
    }
    text += (text.empty() ? "" : "\n") + WriteExplanation(report, *result, explanation, options);
  }
  return text;
}

Result<int> RunExplain(const ExplainArguments& arguments) {
  ResultName target = ParseResultName(arguments.what);
  auto workspace = ULPSCOPE_TRY(OpenForCase(arguments.run, target.id, arguments.adapters));
  PrintNotes(workspace.notes);
  auto found = ULPSCOPE_TRY(FindRun(arguments.run, arguments.seed, &target, &workspace));
  RecordedRun& run = found.run;
  Keep(&run, target);
  auto classified = ULPSCOPE_TRY(ReadClassifiedOf(run, target.id));
  const auto report = ULPSCOPE_TRY(JudgeRun(run, workspace, &classified));
  ConsoleOptions options = DetectConsole();
  if (arguments.verbose) options.verbosity = ConsoleOptions::Verbosity::kVerbose;
  const Case& shown = *workspace.Find(target.id);
  const std::string text = Explain(report, run, shown, target.backend, options);
  Print(text.empty() ? "every backend skips this case\n" : text);
  return 0;
}

}  // namespace

void AddExplainCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("explain", "show how a result was classified");
  ExplainArguments* arguments = OptionsOf(command, exit_code, RunExplain);
  command
      ->add_option("what", arguments->what,
                   "ID or ID@BACKEND; the id of a recorded run, a case file, or FILE/NAME")
      ->required();
  command->add_option("--run", arguments->run,
                      "a run folder (default: runs/latest if it holds the case, else a run made now)");
  command->add_option("--seed", arguments->seed, "seed of the inputs, for a run made now");
  AddAdapterOption(command, &arguments->adapters);
  command->add_flag("-v,--verbose", arguments->verbose, "every model, every exclusion, every stage");
}

}  // namespace ulpscope
