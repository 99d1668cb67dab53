// ulpscope compare F G: whether two programs are one function, and what their results differ in.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/cli/choose_backends.h"
#include "harness/cli/commands.h"
#include "harness/cli/exit_codes.h"
#include "harness/cli/run_report_files.h"
#include "harness/cli/terminal.h"
#include "harness/compare/compare_programs.h"
#include "oracles/oracle.h"
#include "reports/json_report.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

using Json = nlohmann::json;

struct CompareArguments {
  std::vector<std::string> programs, adapters;
  std::string backend = "torch-eager", json;
  int64_t seed = 0;
  double timeout = 120;
};

std::string NameOfProgram(const std::string& id) { return id.substr(id.find_last_of('/') + 1); }

/// The two cases that were named: one of each argument, or both of one file.
Result<std::pair<ProgramToCompare, ProgramToCompare>> TwoPrograms(const std::vector<std::string>& arguments,
                                                                  Workspace* workspace) {
  std::vector<ProgramToCompare> programs;
  for (const std::string& argument : arguments) {
    const std::vector<Error> errors = LoadInto(workspace, {argument});
    if (!errors.empty()) return Fail(errors.front());
    for (const Case& c : workspace->cases) programs.push_back({.name = NameOfProgram(c.id), .test_case = c});
    const size_t expected = arguments.size() == 1 ? 2 : 1;
    if (workspace->cases.size() != expected)
      return Fail(Problem("compare takes two cases",
                          fmt::format("{} in '{}'", workspace->cases.size(), argument),
                          expected == 2 ? "a file that holds two, or two that hold one each"
                                        : "an id, or a file that holds one case"));
  }
  if (programs[0].name == programs[1].name) {
    programs[0].name = "f";
    programs[1].name = "g";
  }
  return std::pair(std::move(programs[0]), std::move(programs[1]));
}

Json PartingJson(const ProgramComparison& comparison) {
  if (!comparison.parting) return nullptr;
  const ExactParting& parting = *comparison.parting;
  const auto number = [](double value) {
    return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
  };
  return {{"step", parting.step},      {"of_f", parting.of_f},
          {"only_f", parting.only_f},  {"at_f", parting.at_f},
          {"at_g", parting.at_g},      {"element", Coordinates(parting.element, comparison.parting_shape)},
          {"f", number(parting.f.hi)}, {"g", number(parting.g.hi)}};
}

std::string ComparisonJson(const ProgramComparison& comparison) {
  Json results = Json::array(), matched = Json::array(), ledgers = Json::array();
  for (const ComparedResult& result : comparison.results)
    results.push_back({{"f", result.f},
                       {"g", result.g},
                       {"shape", result.shape},
                       {"elements", result.elements},
                       {"compared", result.compared},
                       {"undecided", result.undecided},
                       {"different", result.different}});
  for (const ResultPair& pair : comparison.matched) matched.push_back({{"f", pair.f}, {"g", pair.g}});
  for (const Ledger& ledger : comparison.ledgers) ledgers.push_back(Json::parse(WriteLedgerJson(ledger)));
  return Json{{"schema", "ulpscope.comparison/1"},
              {"f", comparison.f},
              {"g", comparison.g},
              {"backend", comparison.backend},
              {"same_function", !comparison.parting.has_value()},
              {"first_difference", PartingJson(comparison)},
              {"results", std::move(results)},
              {"matched", std::move(matched)},
              {"of_numbers", comparison.of_numbers},
              {"ledgers", std::move(ledgers)},
              {"summary", SummaryOf(comparison)},
              {"details", DetailsOf(comparison)}}
             .dump(2) +
         "\n";
}

Result<int> RunCompare(const CompareArguments& arguments) {
  BindOracleLibraries();
  if (!arguments.json.empty() && arguments.json != "-") ULPSCOPE_TRY(CheckWritable("--json", arguments.json));
  auto workspace = ULPSCOPE_TRY(OpenWorkspace(arguments.adapters));
  PrintNotes(workspace.notes);
  const auto [f, g] = ULPSCOPE_TRY(TwoPrograms(arguments.programs, &workspace));
  const auto backends = ULPSCOPE_TRY(ParseBackendList(arguments.backend, workspace.registry));
  if (backends.size() != 1)
    return Fail(Problem("compare runs both programs on one backend", "'" + arguments.backend + "'", "one"));
  ULPSCOPE_TRY(CheckInstalled(backends.front(), backends.front().name, workspace.registry));
  const auto comparison = ULPSCOPE_TRY(ComparePrograms(
      workspace, f, g,
      {.backend = backends.front().Text(), .seed = arguments.seed, .timeout_s = arguments.timeout}));
  if (arguments.json != "-") {
    const size_t columns = DetectConsole().columns;
    std::string text = Wrap("", TerminalSafe(SummaryOf(comparison)), columns);
    for (const std::string& line : DetailsOf(comparison)) text += Wrap("  ", TerminalSafe(line), columns);
    ULPSCOPE_TRY(PrintReport(text));
  }
  if (!arguments.json.empty()) {
    const std::string json = ComparisonJson(comparison);
    if (arguments.json == "-") {
      ULPSCOPE_TRY(PrintReport(json));
    } else {
      ULPSCOPE_TRY(WriteFile(arguments.json, json));
    }
  }
  return comparison.parting ? kExitNot : 0;
}

}  // namespace

void AddCompareCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("compare",
                                         "whether two programs are one function on the same inputs: the step "
                                         "in which they part, or what their rounding differs in");
  CompareArguments* arguments = OptionsOf(command, exit_code, RunCompare);
  command
      ->add_option("programs", arguments->programs,
                   "two ids or files of one case each, or a file that holds two")
      ->required()
      ->expected(1, 2);
  command->add_option("-b,--backends", arguments->backend,
                      "the backend that computes both (default: torch-eager)");
  command->add_option("--json", arguments->json, "the comparison as JSON (- is stdout)");
  command->add_option("--seed", arguments->seed, "seed of the inputs");
  command->add_option("--timeout", arguments->timeout, "seconds for one run of one program")
      ->check(CLI::PositiveNumber);
  AddAdapterOption(command, &arguments->adapters);
}

}  // namespace ulpscope
