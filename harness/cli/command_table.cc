// Reading the command line's own table.
#include "harness/cli/command_table.h"

#include "harness/base/find.h"
#include "harness/base/text.h"

namespace ulpscope {
namespace {

/// "TEXT:{fast,boost}" gives the words.
std::vector<std::string> ChoicesOf(const std::string& type) {
  const size_t begin = type.find(":{"), end = type.rfind('}');
  if (begin == type.npos || end == type.npos || end < begin) return {};
  return SplitOutsideParentheses(type.substr(begin + 2, end - begin - 2), ',');
}

OptionEntry EntryOf(const CLI::Option& option) {
  OptionEntry entry;
  for (const auto& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) entry.names.push_back("--" + name);
  if (entry.names.empty()) entry.positional = option.get_name(true);
  entry.about = option.get_description();
  entry.required = option.get_required();
  entry.many = option.get_expected_max() > 1;
  if (option.get_expected_max() == 0) return entry;
  const std::string type = option.get_type_name();
  entry.choices = ChoicesOf(type);
  entry.value = type.substr(0, type.find(':'));
  return entry;
}

void Walk(const CLI::App& app, const std::vector<std::string>& path, std::vector<CommandEntry>* all) {
  CommandEntry entry{
      .path = path,
      .about = app.get_description(),
  };
  for (const CLI::Option* option : app.get_options()) entry.options.push_back(EntryOf(*option));
  const auto below = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* command : below) entry.commands.push_back(command->get_name());
  all->push_back(std::move(entry));
  for (const CLI::App* command : below) {
    auto longer = path;
    longer.push_back(command->get_name());
    Walk(*command, longer, all);
  }
}

std::string WordsOf(const CommandEntry& command) {
  std::vector<std::string> words = command.commands;
  for (const OptionEntry& option : command.options)
    words.insert(words.end(), option.names.begin(), option.names.end());
  return Join(words, " ");
}

/// In single quotes of a shell.
std::string ShellQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// " list cases": where a command line stands.
std::string PlaceOf(const CommandEntry& command) {
  return command.path.empty() ? "" : " " + Join(command.path, " ");
}

/// All of them as one pattern of a shell.
std::string PlacePattern(const std::vector<CommandEntry>& commands) {
  std::vector<std::string> places;
  for (const CommandEntry& command : commands) {
    if (!command.path.empty()) places.push_back(ShellQuoted(PlaceOf(command)));
  }
  return Join(places, " | ");
}

bool TakesBackends(const OptionEntry& option) { return Contains(option.names, "--backends"); }

/// Text between brackets and colons of _arguments.
std::string ZshText(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe;
}

std::string ZshAction(const OptionEntry& option) {
  if (!option.choices.empty()) return "(" + Join(option.choices, " ") + ")";
  return TakesBackends(option) ? "_ulpscope_backends" : "_files";
}

void ZshSpecs(const OptionEntry& option, std::string* text) {
  if (!option.positional.empty()) {
    *text += " \\\n        " +
             ShellQuoted((option.many ? "*:" : ":") + ZshText(option.positional) + ":" + ZshAction(option));
    return;
  }
  for (const auto& name : option.names) {
    std::string spec = (option.many ? "*" : "") + name;
    if (!option.value.empty() && name.starts_with("--")) spec += "=";
    spec += "[" + ZshText(option.about) + "]";
    if (!option.value.empty()) spec += ":" + ZshText(option.value) + ":" + ZshAction(option);
    *text += " \\\n        " + ShellQuoted(spec);
  }
}

/// Nothing in it is a request of roff's; a hyphen stays one that can be copied.
std::string Roff(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else if (c == '\n') {
      safe += "\n.br\n";
    } else {
      if ((c == '.' || c == '\'') && (safe.empty() || safe.back() == '\n')) safe += "\\&";
      safe += c;
    }
  }
  return safe;
}

std::string RoffOption(const OptionEntry& option) {
  std::vector<std::string> names;
  for (const auto& name : option.names) names.push_back("\\fB" + Roff(name) + "\\fR");
  std::string head =
      option.positional.empty() ? Join(names, ", ") : "\\fI" + Roff(option.positional) + "\\fR";
  if (option.positional.empty() && !option.value.empty()) head += " \\fI" + Roff(option.value) + "\\fR";
  if (option.many) head += " ...";
  std::string about = Roff(option.about);
  if (!option.choices.empty())
    about += (about.empty() ? "" : " ") + Roff("(" + Join(option.choices, ", ") + ")");
  return ".TP\n" + head + "\n" + (about.empty() ? "\\&" : about) + "\n";
}

}  // namespace

std::vector<CommandEntry> CommandTable(const CLI::App& app) {
  std::vector<CommandEntry> all;
  Walk(app, {}, &all);
  return all;
}

std::string BashCompletion(const std::vector<CommandEntry>& commands) {
  std::string text =
      R"bash(# bash completion for ulpscope, written by `ulpscope completion bash`: source it, or keep it as
# ~/.local/share/bash-completion/completions/ulpscope
_ulpscope() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} place='' words='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$place ${COMP_WORDS[i]}" in
)bash";
  text += "      " + PlacePattern(commands) +
          ") place=\"$place ${COMP_WORDS[i]}\" ;;\n    esac\n  done\n  case \"$place/$before\" in\n";
  for (const CommandEntry& command : commands) {
    for (const OptionEntry& option : command.options) {
      if (option.names.empty() || option.value.empty()) continue;
      std::vector<std::string> patterns;
      for (const auto& name : option.names) patterns.push_back(ShellQuoted(PlaceOf(command) + "/" + name));
      std::string reply = "COMPREPLY=($(compgen -f -- \"$word\"))";
      if (!option.choices.empty())
        reply = "COMPREPLY=($(compgen -W " + ShellQuoted(Join(option.choices, " ")) + " -- \"$word\"))";
      if (TakesBackends(option)) reply = "_ulpscope_backends";
      text += "    " + Join(patterns, " | ") + ") " + reply + "; return ;;\n";
    }
  }
  text += "  esac\n  case \"$place\" in\n";
  for (const CommandEntry& command : commands)
    text += "    " + ShellQuoted(PlaceOf(command)) + ") words=" + ShellQuoted(WordsOf(command)) + " ;;\n";
  return text + R"bash(  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  # What stands at its place is a case, a file or a folder.
  if [[ $word != -* && -n $place ]]; then COMPREPLY+=($(compgen -f -- "$word")); fi
}
# Names joined by commas: the last one is completed.
_ulpscope_backends() {
  local word=${COMP_WORDS[COMP_CWORD]} head='' name names=all
  [[ $word == *,* ]] && head="${word%,*},"
  while read -r name _; do names+=" $name"; done < <("${COMP_WORDS[0]}" list backends 2>/dev/null)
  for name in $names; do
    [[ $head$name == "$word"* ]] && COMPREPLY+=("$head$name")
  done
}
complete -o filenames -F _ulpscope ulpscope
)bash";
}

std::string ZshCompletion(const std::vector<CommandEntry>& commands) {
  std::string text = R"zsh(#compdef ulpscope
# zsh completion for ulpscope, written by `ulpscope completion zsh`: keep it as _ulpscope in a folder of $fpath.
_ulpscope_backends() {
  local -a names
  names=(${${(f)"$(ulpscope list backends 2>/dev/null)"}%% *} all)
  _values -s , backend $names
}
_ulpscope() {
  local place='' word
  for word in ${words[2,CURRENT-1]}; do
    case "$place $word" in
)zsh";
  text += "      " + PlacePattern(commands) +
          ") place=\"$place $word\" ;;\n    esac\n  done\n  case \"$place\" in\n";
  for (const CommandEntry& command : commands) {
    text += "    " + ShellQuoted(PlaceOf(command)) + ")\n      _arguments -S";
    for (const OptionEntry& option : command.options) ZshSpecs(option, &text);
    if (!command.commands.empty())
      text += " \\\n        " + ShellQuoted("*:command:(" + Join(command.commands, " ") + ")");
    text += " ;;\n";
  }
  return text + "  esac\n}\n_ulpscope \"$@\"\n";
}

std::string ManualPage(const std::vector<CommandEntry>& commands, const std::string& footer) {
  std::string text = ".\\\" Written by `ulpscope man`.\n.TH ULPSCOPE 1\n.SH NAME\nulpscope \\- " +
                     Roff("names the precision that a tensor program really computed in") +
                     "\n.SH SYNOPSIS\n";
  for (const CommandEntry& command : commands) {
    if (!command.commands.empty()) continue;
    text += ".B " + Roff("ulpscope " + Join(command.path, " ")) + "\n";
    text += "[\\fIoptions\\fR]";
    for (const OptionEntry& option : command.options) {
      if (option.positional.empty()) continue;
      const std::string name = "\\fI" + Roff(option.positional) + "\\fR" + (option.many ? " ..." : "");
      text += option.required ? " " + name : " [" + name + "]";
    }
    text += "\n.br\n";
  }
  text += ".SH DESCRIPTION\n" + Roff(commands.front().about) + "\n.SH COMMANDS\n";
  for (const CommandEntry& command : commands) {
    text += ".SS " + Roff(command.path.empty() ? "ulpscope" : "ulpscope " + Join(command.path, " ")) + "\n";
    if (!command.path.empty() && !command.about.empty()) text += Roff(command.about) + "\n";
    for (const OptionEntry& option : command.options) text += RoffOption(option);
  }
  return text + ".SH EXIT STATUS\n" + Roff(footer) + "\n";
}

}  // namespace ulpscope
