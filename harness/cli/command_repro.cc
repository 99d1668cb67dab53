// ulpscope repro ID@BACKEND -o DIR: a folder that shows one result on any machine: the case, the bits of its
// inputs, the command. Data alone: no code, no pickle, nothing that runs.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "backends/sdk/safetensors.h"
#include "harness/casefile/generate.h"
#include "harness/cli/case_yaml.h"
#include "harness/cli/cli.h"
#include "harness/cli/commands.h"
#include "harness/cli/run_judge.h"
#include "harness/cli/run_report_files.h"
#include "harness/cli/terminal.h"
#include "harness/run/backend.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

struct ReproArguments {
  std::string what, out;
  int64_t seed = 0;
  std::vector<std::string> adapters;
};

std::string Readme(const Case& test_case, const std::string& backend, int64_t seed,
                   const std::string& flags) {
  const std::string command = fmt::format("ulpscope run case.yaml -b {} --seed {}{}", ShellQuote(backend),
                                          seed, flags.empty() ? "" : " " + flags);
  return fmt::format(
      "# {} on {}\n\n"
      "    {}\n\n"
      "`case.yaml` is the case as it was run. `inputs.safetensors` holds the bits of its tensors for seed "
      "{}, for programs\n"
      "that read them without ulpscope; ulpscope makes the same bits from the case.\n",
      test_case.id, backend, command, seed);
}

Result<void> WriteBundle(const Case& test_case, const std::string& backend, const ReproArguments& arguments,
                         const std::string& flags) {
  const fs::path dir = arguments.out;
  std::error_code code;
  fs::create_directories(dir, code);
  if (code) return Fail("cannot make " + dir.string() + ": " + code.message());
  const auto yaml = WriteCaseYaml(test_case, backend);
  if (!yaml) return Fail(yaml.error());
  const auto inputs = MakeInputs(test_case, arguments.seed);
  if (!inputs) return Fail(inputs.error());
  if (auto written = WriteFile(dir / "case.yaml", *yaml); !written) return written;
  if (auto written = sdk::WriteSafetensors((dir / "inputs.safetensors").string(), *inputs); !written)
    return written;
  return WriteFile(dir / "README.md", Readme(test_case, backend, arguments.seed, flags));
}

int RunRepro(const ReproArguments& arguments) {
  const size_t at = arguments.what.find('@');
  if (at == std::string::npos) {
    return UsageError(Problem("repro needs a case and a backend", "'" + arguments.what + "'", "ID@BACKEND"));
  }
  auto workspace = OpenWorkspace(arguments.adapters);
  if (!workspace) return UsageError(workspace.error());
  const std::string id = arguments.what.substr(0, at);
  if (const auto errors = LoadInto(&*workspace, {id}); !errors.empty()) return UsageError(errors.front());
  const auto backend = ParseBackend(arguments.what.substr(at + 1), workspace->registry);
  if (!backend) return UsageError(backend.error());
  const Case* test_case = workspace->Find(id);
  if (test_case == nullptr) return UsageError(Problem("repro takes one case", "'" + id + "'", "a whole id"));
  const auto written = WriteBundle(*test_case, backend->Text(), arguments, workspace->ExtraFlags());
  if (!written) return UsageError(written.error());
  Print(fmt::format("cd {} && ulpscope run case.yaml -b {} --seed {}\n", ShellQuote(arguments.out),
                    ShellQuote(backend->Text()), arguments.seed));
  return 0;
}

}  // namespace

void AddReproCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ReproArguments>();
  CLI::App* command = app.add_subcommand("repro", "write a folder that reproduces one result");
  command->add_option("what", arguments->what, "ID@BACKEND")->required();
  command->add_option("-o,--out", arguments->out, "the folder")->required();
  command->add_option("--seed", arguments->seed, "seed of the inputs");
  command->add_option("--adapter", arguments->adapters, "an adapter outside this tree")
      ->allow_extra_args(false);
  command->callback([arguments, &exit_code] { exit_code = RunRepro(*arguments); });
}

}  // namespace ulpscope
