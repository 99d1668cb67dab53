// ulpscope repro ID@BACKEND -o DIR: a folder that shows one result on any machine: the case, the bits of its
// inputs and of what was observed, the command; for PyTorch and JAX a script that needs nothing of ulpscope.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "backends/sdk/safetensors.h"
#include "harness/base/find.h"
#include "harness/casefile/generate.h"
#include "harness/cli/commands.h"
#include "harness/cli/run_report_files.h"
#include "harness/cli/terminal.h"
#include "harness/judge/judge.h"
#include "harness/record/file_bytes.h"
#include "harness/repro/repro_script.h"
#include "harness/workspace/case_yaml.h"
#include "harness/workspace/recorded_cases.h"
#include "harness/workspace/recorded_run.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

struct ReproArguments {
  std::string what, run, out;
  std::optional<int64_t> seed;
  std::vector<std::string> adapters;
};

std::string Readme(const Case& test_case, const std::string& backend, int64_t seed, const std::string& flags,
                   const std::string& script) {
  const std::string command = fmt::format("ulpscope run case.yaml -b {} --seed {}{}", ShellQuote(backend),
                                          seed, flags.empty() ? "" : " " + flags);
  return fmt::format(
      "# {} on {}\n\n"
      "    {}\n\n"
      "`case.yaml` is the case as it was run. `inputs.safetensors` holds the bits of its tensors for seed "
      "{}, which ulpscope\n"
      "makes from the case too; `observed.safetensors`, if it is here, what the backend gave.\n\n{}\n",
      test_case.id, backend, command, seed, script);
}

/// The recorded result with its tensors, its inputs, and everything that is needed to repeat it.
Result<std::string> WriteBundle(const Case& test_case, const RecordedRun& run, const std::string& backend,
                                const fs::path& dir, const std::string& flags) {
  ULPSCOPE_TRY(MakeFolders(dir));
  const auto yaml = ULPSCOPE_TRY(WriteCaseYaml(test_case, backend));
  ULPSCOPE_TRY(CopyTensorFiles(test_case, dir));
  const auto inputs = ULPSCOPE_TRY(MakeInputs(test_case, run.header.seed));
  ULPSCOPE_TRY(WriteFile(dir / "case.yaml", yaml));
  ULPSCOPE_TRY(sdk::WriteSafetensors((dir / "inputs.safetensors").string(), inputs));
  std::string about = "There is no script: nothing is recorded.";
  if (const RecordedResult* found = run.Find(test_case.id, backend)) {
    RecordedResult result = *found;
    ULPSCOPE_TRY(LoadTensors(run, result));
    const auto& values = result.observation.values;
    if (!values.empty()) {
      ULPSCOPE_TRY(sdk::WriteSafetensors((dir / "observed.safetensors").string(), values));
    }
    const auto script = WriteReproScript(test_case, {.backend = backend,
                                                     .versions = LookupOr(run.versions, backend),
                                                     .knobs = result.observation.knobs_asked,
                                                     .outcome = result.observation.outcome});
    about = script ? "    python3 repro.py\n\ncomputes it without ulpscope, and says whether the recorded "
                     "bits come back."
                   : "No repro.py: " + script.error().Text() + ".";
    if (script) {
      ULPSCOPE_TRY(WriteFile(dir / "repro.py", *script));
    }
  }
  ULPSCOPE_TRY(WriteFile(dir / "README.md", Readme(test_case, backend, run.header.seed, flags, about)));
  return about.starts_with("    ") ? std::string("python3 repro.py") : std::string();
}

Result<int> RunRepro(const ReproArguments& arguments) {
  ResultName name = ParseResultName(arguments.what);
  if (name.backend.empty()) {
    return Fail(Problem("repro needs a case and a backend", "'" + arguments.what + "'", "ID@BACKEND"));
  }
  auto workspace = ULPSCOPE_TRY(OpenForCase(arguments.run, name.id, arguments.adapters));
  PrintNotes(workspace.notes);
  const auto found = ULPSCOPE_TRY(FindRun(arguments.run, arguments.seed, &name, &workspace));
  const RecordedRun& run = found.run;
  const auto script = ULPSCOPE_TRY(
      WriteBundle(*workspace.Find(name.id), run, name.backend, arguments.out, workspace.ExtraFlags()));
  const std::string there = "cd " + ShellQuote(arguments.out) + " && ";
  if (!script.empty()) Print(there + script + "\n");
  Print(fmt::format("{}ulpscope run case.yaml -b {} --seed {}\n", there, ShellQuote(name.backend),
                    run.header.seed));
  return 0;
}

}  // namespace

void AddReproCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "repro", "write a folder that reproduces one result, with a script where its stack is a Python one");
  ReproArguments* arguments = OptionsOf(command, exit_code, RunRepro);
  command->add_option("what", arguments->what, "ID@BACKEND: a result of a run")->required();
  command->add_option("-o,--out", arguments->out, "the folder")->required();
  command->add_option("--run", arguments->run,
                      "a run folder (default: runs/latest if it holds the result, else a run made now)");
  command->add_option("--seed", arguments->seed, "seed of the inputs, for a run made now");
  AddAdapterOption(command, &arguments->adapters);
}

}  // namespace ulpscope
