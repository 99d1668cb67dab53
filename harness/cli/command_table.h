// The commands and their options as data, read from the command line's parser: the manual page and the shells
// list the same as --help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace ulpscope {

struct OptionEntry {
  std::vector<std::string> names;    ///< "-b", "--backends"; empty for what stands at its place
  std::string positional;            ///< "cases"; empty for an option
  std::string value;                 ///< "TEXT", "N"; empty for a flag
  std::vector<std::string> choices;  ///< the words that it takes; empty: anything
  std::string about;
  bool required = false, many = false;
};

struct CommandEntry {
  std::vector<std::string> path;  ///< "list", "cases"; empty for the program itself
  std::string about;
  std::vector<OptionEntry> options = {};   ///< --help first
  std::vector<std::string> commands = {};  ///< those below it
};

/// The program itself first, then every command, those below a command after it.
std::vector<CommandEntry> CommandTable(const CLI::App& app);

/// Scripts that a shell reads, and the page that man does.
std::string BashCompletion(const std::vector<CommandEntry>& commands);
std::string ZshCompletion(const std::vector<CommandEntry>& commands);
/// `footer`: what the exit codes mean.
std::string ManualPage(const std::vector<CommandEntry>& commands, const std::string& footer);

}  // namespace ulpscope
