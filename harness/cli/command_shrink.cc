// ulpscope shrink CASE -b A,B: the smallest case on which the two still part, and a script that shows it without ulpscope.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/generate.h"
#include "harness/cli/choose_backends.h"
#include "harness/cli/commands.h"
#include "harness/cli/exit_codes.h"
#include "harness/cli/run_report_files.h"
#include "harness/cli/terminal.h"
#include "harness/record/file_bytes.h"
#include "harness/repro/parting_script.h"
#include "harness/shrink/shrink.h"
#include "harness/workspace/case_yaml.h"
#include "oracles/oracle.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

struct ShrinkArguments {
  std::string what, backends, kind, value, out;
  std::vector<std::string> adapters;
  int64_t seed = 0;
  double minutes = 10, timeout = 120;
  bool quiet = false, verbose = false;
};

std::vector<std::string> KindNames() {
  std::vector<std::string> names;
  for (const DivergenceRow& row : kDivergenceRows) {
    if (row.can_be_shrunk) names.emplace_back(row.word);
  }
  return names;
}

Result<std::vector<BackendSpec>> TwoBackends(const std::string& text, const Registry& registry) {
  auto named = ULPSCOPE_TRY(ParseBackendList(text, registry));
  if (named.size() != 2 || named[0] == named[1])
    return Fail(Problem("shrink looks at two backends", "'" + text + "'", "A,B"));
  for (const auto& backend : named) ULPSCOPE_TRY(CheckInstalled(backend, backend.name, registry));
  return named;
}

/// The result, as files and as text.
struct ShrinkOutput {
  std::string yaml, script, no_script, summary;
};

Result<ShrinkOutput> Write(const Shrunk& shrunk, const std::vector<BackendSpec>& backends,
                           const Trials& trials, const ShrinkArguments& arguments) {
  ShrinkOutput output;
  Case named = shrunk.test_case;
  named.about = shrunk.target.sentence;
  const auto yaml = ULPSCOPE_TRY(WriteCaseYaml(named, kEveryBackend));
  // The first line states how the text was made.
  output.yaml =
      fmt::format("# Shrunk from {}: {} of {} steps, {} of {} elements.{}\n{}", named.id, shrunk.steps_after,
                  shrunk.steps_before, shrunk.elements_after, shrunk.elements_before,
                  arguments.seed == 0 ? "" : fmt::format(" Inputs of --seed {}.", arguments.seed),
                  yaml.substr(yaml.find('\n') + 1));
  output.summary = fmt::format("{}: {} of {} steps, {} of {} elements, {} trials", Describe(shrunk.target),
                               shrunk.steps_after, shrunk.steps_before, shrunk.elements_after,
                               shrunk.elements_before, trials.ran());
  const auto inputs = ULPSCOPE_TRY(MakeInputs(named, arguments.seed));
  std::vector<PartingSide> sides;
  for (size_t i = 0; i < 2; ++i) {
    const Observation& seen = shrunk.last.observations[i];
    sides.push_back({.subject = {.backend = backends[i].Text(),
                                 .versions = trials.Versions(i),
                                 .knobs = seen.knobs_asked,
                                 .outcome = seen.outcome},
                     .values = seen.values});
  }
  const auto script = WritePartingScript(named, inputs, sides[0], sides[1], named.about);
  if (script) {
    output.script = *script;
  } else {
    output.no_script = script.error().message;
  }
  return output;
}

Result<void> WriteShrunkFiles(const ShrinkOutput& output, const Shrunk& shrunk, const fs::path& dir,
                              int64_t trials) {
  ULPSCOPE_TRY(MakeFolders(dir));
  const nlohmann::json about{{"kind", Name(shrunk.target.kind)},
                             {"value", shrunk.target.value},
                             {"op", shrunk.target.op},
                             {"edge", shrunk.target.edge},
                             {"basis", shrunk.target.basis},
                             {"first", shrunk.target.first},
                             {"second", shrunk.target.second},
                             {"sentence", shrunk.target.sentence},
                             {"steps", shrunk.steps_after},
                             {"steps_before", shrunk.steps_before},
                             {"elements", shrunk.elements_after},
                             {"elements_before", shrunk.elements_before},
                             {"stopped_early", shrunk.stopped_early},
                             {"no_script", output.no_script},
                             {"trials", trials}};
  ULPSCOPE_TRY(WriteFile(dir / "case.yaml", output.yaml));
  ULPSCOPE_TRY(WriteFile(dir / "shrunk.json", about.dump(2) + "\n"));
  return output.script.empty() ? Result<void>() : WriteFile(dir / "repro.py", output.script);
}

Result<int> RunShrink(const ShrinkArguments& arguments) {
  BindOracleLibraries();
  std::vector<Error> errors;
  auto workspace = ULPSCOPE_TRY(OpenWithCases(arguments.adapters, {arguments.what}, &errors));
  PrintNotes(workspace.notes);
  if (!errors.empty()) {
    for (const Error& error : errors) PrintError(error);
    return kExitUsage;
  }
  const auto backends = ULPSCOPE_TRY(TwoBackends(arguments.backends, workspace.registry));
  if (workspace.cases.size() != 1)
    return Fail(Problem("shrink takes one case", fmt::format("{} cases", workspace.cases.size()),
                        "the id of one, or a file that holds one"));
  const Case c = workspace.cases.front();
  if (!arguments.out.empty()) {
    ULPSCOPE_TRY(MakeFolders(arguments.out));
    ULPSCOPE_TRY(CheckWritable("--out", fs::path(arguments.out) / "case.yaml"));
  }
  auto trials = ULPSCOPE_TRY(Trials::Open(workspace, backends, c,
                                          {.seed = arguments.seed,
                                           .timeout_s = arguments.timeout,
                                           .trace = arguments.kind == Name(DivergenceKind::kCasts)}));
  ShrinkOptions options{
      .kind = ParseDivergenceKind(arguments.kind),
      .value = arguments.value,
      .seed = arguments.seed,
      .minutes = arguments.minutes,
  };
  if (!arguments.quiet) options.progress = [&](const std::string& line) { PrintError("ulpscope: " + line); };
  if (arguments.verbose) options.refused = options.progress;
  const auto shrunk = ShrinkCase(c, trials.get(), options);
  if (!shrunk) {
    PrintError(shrunk.error());
    return kExitNot;
  }
  const auto output = ULPSCOPE_TRY(Write(*shrunk, backends, *trials, arguments));
  Print(output.yaml);
  if (arguments.out.empty()) {
    if (!output.script.empty()) Print("\n" + output.script);
  } else {
    ULPSCOPE_TRY(WriteShrunkFiles(output, *shrunk, arguments.out, trials->ran()));
  }
  PrintError("ulpscope: " + output.summary);
  if (!output.no_script.empty()) PrintError("ulpscope: no script: " + output.no_script);
  if (shrunk->stopped_early)
    PrintError(fmt::format(
        "ulpscope: stopped early, {}: it may be smaller yet",
        trials->interrupted() ? "interrupted" : fmt::format("after {} minutes", arguments.minutes)));
  return trials->interrupted() ? kExitInterrupted : 0;
}

}  // namespace

void AddShrinkCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "shrink",
      "the smallest case on which two backends part as they do on this one, and a script that shows it");
  ShrinkArguments* arguments = OptionsOf(command, exit_code, RunShrink);
  command->add_option("case", arguments->what, "an id, or a file that holds one case")->required();
  command
      ->add_option("-b,--backends", arguments->backends,
                   "A,B; what A computed takes the place of steps that are cut")
      ->required();
  command
      ->add_option("--kind", arguments->kind,
                   "the kind of divergence that is kept (default: the first one there is)")
      ->check(CLI::IsMember(KindNames()));
  command->add_option("--value", arguments->value, "the value at which they part (default: the first one)");
  command->add_option("-o,--out", arguments->out,
                      "a folder for case.yaml, shrunk.json and repro.py (default: stdout)");
  command->add_option("--minutes", arguments->minutes, "stop after so many, with what there is by then")
      ->check(CLI::PositiveNumber);
  command->add_option("--seed", arguments->seed, "seed of the inputs");
  command->add_option("--timeout", arguments->timeout, "seconds for one run of one case")
      ->check(CLI::PositiveNumber);
  AddAdapterOption(command, &arguments->adapters);
  command->add_flag("-q,--quiet", arguments->quiet, "no progress");
  command->add_flag("-v,--verbose", arguments->verbose, "also what was tried in vain");
}

}  // namespace ulpscope
