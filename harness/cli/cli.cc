// Parsing: CLI11's exit codes and messages become ours.
#include "harness/cli/cli.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "harness/base/build_info.h"
#include "harness/base/find.h"
#include "harness/base/machine_limits.h"
#include "harness/base/text.h"
#include "harness/cli/commands.h"
#include "harness/cli/terminal.h"
#include "harness/workspace/recorded_run.h"

namespace ulpscope {
namespace {

constexpr const char* kAbout =
    "What precision did this tensor program really compute in, on each backend, and where do the backends "
    "part?";
constexpr const char* kFooter =
    "Exit codes: 0 conforms, 1 does not, 2 interrupted, 3 a bug in ulpscope, 4 usage or invalid case, 5 "
    "nothing selected\n"
    "or nothing checked, 6 incomplete (crash, timeout, missing).";

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

/// One line per missing required argument, with its description; for a result's id also the run's ids.
std::vector<std::string> MissingArguments(const CLI::App& command, const std::string& otherwise) {
  std::vector<std::string> lines;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    const std::string& about = option->get_description();
    lines.push_back(fmt::format("ulpscope: {}: {} is required{}", command.get_name(), option->get_name(),
                                about.empty() ? "" : ": " + about));
    if (!option->get_positional() || !about.starts_with("ID")) continue;
    const CLI::Option* run = command.get_option_no_throw("--run");
    const auto at_hand = ResultsAtHand(run == nullptr || run->count() == 0 ? "" : run->as<std::string>(),
                                       "ulpscope " + command.get_name());
    lines.insert(lines.end(), at_hand.begin(), at_hand.end());
  }
  if (lines.empty()) lines.push_back("ulpscope: " + otherwise);
  return lines;
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

/// Output that is lost is an error of the machine; a command that failed before keeps its code.
int CodeOncePrinted(int exit_code) {
  const auto printed = PrintedWhole();
  if (printed) return exit_code;
  if (exit_code != kExitUsage) PrintError(printed.error());
  return exit_code == 0 ? kExitUsage : exit_code;
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
  EndWithALine(kExitUsage, kExitBug);
  if (const auto stack = TakeStack(); !stack) {
    PrintError(stack.error());
    return kExitUsage;
  }
  // A write that a limit of the file size forbids fails as one on a full disk does.
  std::signal(SIGXFSZ, SIG_IGN);
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
  AddCompareCommand(app, exit_code);
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
  AddTraceCommand(app, exit_code);
  AddShrinkCommand(app, exit_code);
  AddCompletionCommand(app, exit_code);
  AddManCommand(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text;
    exit_code = app.exit(asked, text, text);
    Print(text.str());
  } catch (const CLI::RequiredError& error) {
    if (app.get_subcommands().empty()) {
      PrintError(std::string("ulpscope: ") + error.what());
      Suggest(app, argc, argv);
    } else {
      for (const std::string& line : MissingArguments(Innermost(app), error.what())) PrintError(line);
    }
    return kExitUsage;
  } catch (const CLI::ParseError& error) {
    PrintError(std::string("ulpscope: ") + error.what());
    Suggest(app, argc, argv);
    return kExitUsage;
  }
  return CodeOncePrinted(exit_code);
}

}  // namespace ulpscope
