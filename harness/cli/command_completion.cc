// ulpscope completion and ulpscope man: what shells and man read, from the table of options itself.
#include <memory>

#include "harness/cli/command_table.h"
#include "harness/cli/commands.h"
#include "harness/cli/terminal.h"

namespace ulpscope {

void AddCompletionCommand(CLI::App& app, int& exit_code) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("completion", "print what a shell reads to complete commands and options");
  command->add_option("shell", *shell, "whose")->required()->check(CLI::IsMember({"bash", "zsh"}));
  command->callback([&app, shell, &exit_code] {
    const auto table = CommandTable(app);
    Print(*shell == "bash" ? BashCompletion(table) : ZshCompletion(table));
    exit_code = 0;
  });
}

void AddManCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("man", "print the manual page (ulpscope man | man -l -)");
  command->callback([&app, &exit_code] {
    Print(ManualPage(CommandTable(app), app.get_footer()));
    exit_code = 0;
  });
}

}  // namespace ulpscope
