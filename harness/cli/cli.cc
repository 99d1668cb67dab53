// Parsing: CLI11's exit codes and messages become ours.
#include "harness/cli/cli.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "harness/base/build_info.h"
#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/cli/commands.h"
#include "harness/cli/terminal.h"

namespace ulpscope {
namespace {

constexpr const char* kAbout =
    "What precision did this tensor program really compute in, on each backend, and where do the backends "
    "part?";
constexpr const char* kFooter =
    "Exit codes: 0 conforms, 1 does not, 2 interrupted, 3 a bug in ulpscope, 4 usage or invalid case, 5 "
    "nothing selected,\n"
    "6 incomplete (crash, timeout, missing).";

/// Every flag of `app` and every name of a command, for suggestions.
std::vector<std::string> CommandWords(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) words.push_back("--" + name);
    for (const auto& name : option->get_snames()) words.push_back("-" + name);
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    words.push_back(command->get_name());
  return words;
}

/// The command that was being parsed.
const CLI::App& Innermost(const CLI::App& app) {
  const auto used = app.get_subcommands();
  return used.empty() ? app : Innermost(*used.back());
}

void Suggest(const CLI::App& app, int argc, const char* const* argv) {
  const std::vector<std::string> known = CommandWords(Innermost(app));
  for (int i = 1; i < argc; ++i) {
    const std::string word = std::string(argv[i]).substr(0, std::string(argv[i]).find('='));
    const bool flag = word.starts_with('-') && word.size() > 1;
    const bool command = i == 1 && app.get_subcommands().empty();
    if (!flag && !command) continue;
    if (Contains(known, word)) continue;
    if (const std::string hint = DidYouMean(word, known); !hint.empty())
      return PrintError("ulpscope: " + word + ": " + hint);
  }
}

/// The standard streams that the caller has closed: a journal or a socket that got one of their numbers would be written
/// into by whatever prints.
void OpenStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one. Nobody reads what goes to a closed stream; that it is gone is no error of ours.
    if (::open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) != fd) std::_Exit(kExitUsage);
  }
}

}  // namespace

int ExitCodeOf(const Result<int>& ended) {
  if (!ended) PrintError(ended.error());
  return ended ? *ended : kExitUsage;
}

void AddAdapterOption(CLI::App* command, std::vector<std::string>* adapters) {
  command->add_option("--adapter", *adapters, "an adapter outside this tree")->allow_extra_args(false);
}

int RunCommandLine(int argc, const char* const* argv, std::string_view commit) {
  OpenStandardStreams();
  std::signal(SIGPIPE, SIG_IGN);  // `ulpscope list cases | head` is no reason to die without an exit code
  CLI::App app{kAbout, "ulpscope"};
  app.footer(kFooter);
  app.set_version_flag("--version", "ulpscope " + std::string(Version()) +
                                        (commit.empty() ? "" : " (" + std::string(commit) + ")"));
  app.require_subcommand(1);
  int exit_code = 0;
  AddRunCommand(app, exit_code);
  AddListCommand(app, exit_code);
  AddExplainCommand(app, exit_code);
  AddJudgeCommand(app, exit_code);
  AddReportCommand(app, exit_code);
  AddDiffCommand(app, exit_code);
  AddPlanCommand(app, exit_code);
  AddMergeCommand(app, exit_code);
  AddBaselineCommand(app, exit_code);
  AddHistoryCommand(app, exit_code);
  AddLintCommand(app, exit_code);
  AddSchemaCommand(app, exit_code);
  AddDoctorCommand(app, exit_code);
  AddNewCommand(app, exit_code);
  AddReproCommand(app, exit_code);
  AddProbeCommand(app, exit_code);
  AddShrinkCommand(app, exit_code);
  AddCompletionCommand(app, exit_code);
  AddManCommand(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    PrintError(std::string("ulpscope: ") + error.what());
    Suggest(app, argc, argv);
    return kExitUsage;
  }
  return exit_code;
}

}  // namespace ulpscope
