// ulpscope lint and ulpscope schema: what is wrong with case files, and what may stand in them.
#include <fmt/format.h>

#include <memory>
#include <set>
#include <string>

#include "harness/casefile/lint.h"
#include "harness/casefile/schema.h"
#include "harness/cli/commands.h"
#include "harness/cli/exit_codes.h"
#include "harness/cli/reference_lint.h"
#include "harness/cli/terminal.h"
#include "harness/words/export.h"
#include "harness/workspace/workspace.h"

namespace ulpscope {
namespace {

struct LintArguments {
  std::vector<std::string> cases;
};

Result<int> RunLint(const LintArguments& arguments) {
  auto workspace = ULPSCOPE_TRY(OpenWorkspace({}));
  const auto errors = LoadInto(&workspace, arguments.cases);
  for (const Error& error : errors) PrintError(error);
  size_t warnings = 0;
  // The cases of a sweep stand at one place, and mostly have the same message.
  std::set<std::string> said;
  const auto say = [&](const char* kind, Error about) {
    about.message = kind + about.message;
    if (!said.insert(about.Text()).second) return false;
    PrintError(about);
    return true;
  };
  for (const Case& test_case : workspace.cases) {
    std::vector<Error> found = Lint(test_case);
    const ReferenceLint references = LintReferences(test_case);
    found.insert(found.end(), references.warnings.begin(), references.warnings.end());
    for (const Error& warning : found) warnings += say("warning: ", warning) ? 1 : 0;
    for (const Error& note : references.notes) say("note: ", note);
  }
  Print(fmt::format("{} cases, {} errors, {} warnings\n", workspace.cases.size(), errors.size(), warnings));
  if (!errors.empty()) return kExitUsage;
  if (workspace.cases.empty()) return kExitNothing;
  return warnings == 0 ? 0 : 1;
}

}  // namespace

void AddLintCommand(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("lint", "check case files, and whether cases can answer their question");
  LintArguments* arguments = OptionsOf(command, exit_code, RunLint);
  command->add_option("cases", arguments->cases, "ids, files or folders (default: the whole suite)");
}

void AddSchemaCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("schema", "print the JSON Schema of case files");
  auto words = std::make_shared<bool>(false);
  command->add_flag("--words", *words, "the words that adapters in Python read, instead");
  command->callback([words, &exit_code] {
    Print(*words ? WordsJson() : JsonSchema());
    exit_code = 0;
  });
}

}  // namespace ulpscope
