// ulpscope list cases|backends|ops|models|knobs: what there is, as lines or as JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/base/text.h"
#include "harness/casefile/words.h"
#include "harness/cli/choose_backends.h"
#include "harness/cli/commands.h"
#include "harness/cli/exit_codes.h"
#include "harness/cli/terminal.h"
#include "harness/words/knobs.h"
#include "harness/words/ops.h"
#include "harness/workspace/workspace.h"
#include "oracles/models.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct ListArguments {
  std::vector<std::string> cases, adapters;
  BackendChoice choice;
  bool json = false, chosen = false;
};

/// One listing: rows of columns for people, the same as objects for programs.
struct Listing {
  std::vector<std::string> keys;
  std::vector<std::vector<std::string>> rows = {};
  size_t for_programs = 0;  ///< columns at the end that people are spared
};

void PrintListing(const Listing& listing, const ListArguments& arguments) {
  if (arguments.json) {
    OrderedJson list = OrderedJson::array();
    for (const auto& row : listing.rows) {
      OrderedJson object = OrderedJson::object();
      for (size_t i = 0; i < listing.keys.size(); ++i) object[listing.keys[i]] = Utf8Safe(row[i]);
      list.push_back(std::move(object));
    }
    return Print(list.dump(2) + "\n");
  }
  std::vector<size_t> widths(listing.keys.size());
  for (const auto& row : listing.rows) {
    for (size_t i = 0; i < row.size() - listing.for_programs; ++i)
      widths[i] = std::max(widths[i], DisplayWidth(TerminalSafe(row[i])));
  }
  std::string text;
  for (const auto& row : listing.rows) {
    std::string line;
    for (size_t i = 0; i < row.size() - listing.for_programs; ++i) {
      const std::string cell = TerminalSafe(row[i]);
      line += cell + std::string(widths[i] - DisplayWidth(cell) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  Print(text);
}

Result<int> ListCases(const ListArguments& arguments) {
  auto workspace = ULPSCOPE_TRY(OpenWorkspace({}));
  const auto errors = LoadInto(&workspace, arguments.cases);
  for (const Error& error : errors) PrintError(error);
  Listing listing{.keys = {"id", "tags", "about", "line"}, .for_programs = 1};
  for (const Case& test_case : workspace.cases) {
    listing.rows.push_back(
        {test_case.id, Join(test_case.tags, ","), test_case.about, std::to_string(test_case.pos.line)});
  }
  PrintListing(listing, arguments);
  if (!errors.empty()) return kExitUsage;
  return listing.rows.empty() ? kExitNothing : 0;
}

/// The columns of `run` with the same arguments.
Result<int> ListChosen(const ListArguments& arguments, const Registry& registry) {
  const auto chosen = ULPSCOPE_TRY(ChooseBackends(arguments.choice, registry));
  Listing listing{.keys = {"backend"}};
  for (const BackendSpec& spec : chosen.backends) listing.rows.push_back({spec.Text()});
  PrintListing(listing, arguments);
  return listing.rows.empty() ? kExitNothing : 0;
}

Result<int> ListBackends(const ListArguments& arguments) {
  auto workspace = ULPSCOPE_TRY(OpenWorkspace(arguments.adapters));
  PrintNotes(workspace.notes);
  if (arguments.chosen) return ListChosen(arguments, workspace.registry);
  Listing listing{.keys = {"backend", "state", "title", "knobs", "install"}};
  for (const auto& row : workspace.registry.rows()) {
    const Availability availability = workspace.registry.Check(row);
    const std::string state = !availability.installed ? (row.absent.empty() ? "not installed" : "absent")
                              : row.is_default        ? "installed"
                                                      : "installed, by name only";
    listing.rows.push_back({row.backend, state, row.title, Join(row.knobs, ","),
                            availability.installed         ? ""
                            : availability.install.empty() ? availability.reason
                                                           : availability.install});
  }
  PrintListing(listing, arguments);
  return 0;
}

Result<int> ListOps(const ListArguments& arguments) {
  Listing listing{.keys = {"op", "operands", "attributes", "about"}};
  for (const OpRow& op : Ops()) {
    std::vector<std::string> attributes;
    for (const auto& attribute : op.attributes) attributes.emplace_back(attribute.key);
    const std::string operands = op.operands.fewest == op.operands.most
                                     ? std::to_string(op.operands.most)
                                     : fmt::format("{} to {}", op.operands.fewest, op.operands.most);
    listing.rows.push_back({std::string(op.name), op.kind == OpRow::Kind::kScope ? "scope" : operands,
                            Join(attributes, ","), std::string(op.about)});
  }
  listing.rows.push_back({"aten::NAME", "as its schema", "as its schema", "an op of PyTorch's dispatcher"});
  listing.rows.push_back({"torch.NAME", "as the function", "as the function",
                          "a function of PyTorch; also torch.nn.functional.NAME, ..."});
  PrintListing(listing, arguments);
  return 0;
}

Result<int> ListModels(const ListArguments& arguments) {
  Listing listing{.keys = {"facet", "word"}};
  const std::pair<const char*, const std::vector<std::string>*> kFacets[] = {
      {"in", &InWords()}, {"prod", &ProdWords()}, {"acc", &AccWords()}, {"mid", &MidWords()}};
  for (const auto& [facet, words] : kFacets) {
    for (const auto& word : *words) listing.rows.push_back({facet, word});
  }
  PrintListing(listing, arguments);
  return 0;
}

Result<int> ListKnobs(const ListArguments& arguments) {
  Listing listing{.keys = {"knob", "values", "backends", "about"}};
  for (const KnobRow& knob : KnobRows()) {
    if (knob.use != KnobRow::Use::kSetting) continue;
    listing.rows.push_back({std::string(knob.name), knob.values.empty() ? "any" : Join(knob.values, ","),
                            Join(knob.takers, ","), std::string(knob.about)});
  }
  PrintListing(listing, arguments);
  return 0;
}

}  // namespace

void AddListCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("list", "list cases, backends, ops, models or knobs");
  command->require_subcommand(1);
  struct Row {
    const char* name;
    const char* about;
    Result<int> (*list)(const ListArguments&);
  };
  static constexpr Row kRows[] = {
      {"cases", "ids, tags, what they are about", ListCases},
      {"backends", "backends, whether they are installed, how to install them", ListBackends},
      {"ops", "the vocabulary of steps", ListOps},
      {"models", "the words that precision models are made of", ListModels},
      {"knobs", "knobs and the backends that take them", ListKnobs}};
  for (const Row& row : kRows) {
    CLI::App* kind = command->add_subcommand(row.name, row.about);
    ListArguments* arguments = OptionsOf(kind, exit_code, row.list);
    if (row.list == ListCases)
      kind->add_option("cases", arguments->cases,
                       "ids, id prefixes, files or folders (default: the whole suite)");
    if (row.list == ListBackends) {
      kind->add_flag("--chosen", arguments->chosen,
                     "only the names of those that `run` takes with these options");
      kind->add_option("-b,--backends", arguments->choice.list, "as in `run`")->needs("--chosen");
      kind->add_option("--knob", arguments->choice.knobs, "as in `run`")
          ->needs("--chosen")
          ->allow_extra_args(false);
      AddAdapterOption(kind, &arguments->adapters);
    }
    kind->add_flag("--json", arguments->json, "as JSON");
  }
}

}  // namespace ulpscope
