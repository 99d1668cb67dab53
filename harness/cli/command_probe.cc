// ulpscope probe BACKEND: what the matrix product of a backend does with numbers, as a datasheet.
#include <fmt/format.h>

#include <fstream>

#include "harness/base/build_info.h"
#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/cli/choose_backends.h"
#include "harness/cli/commands.h"
#include "harness/cli/exit_codes.h"
#include "harness/cli/probe_require.h"
#include "harness/cli/run_report_files.h"
#include "harness/cli/terminal.h"
#include "harness/probe/probe_reader.h"
#include "harness/workspace/workspace.h"
#include "oracles/models.h"
#include "reports/datasheet.h"

namespace ulpscope {
namespace {

struct ProbeArguments {
  std::string backend, dtype = "float32", out_dtype, form = "matmul", json, require;
  std::vector<std::string> adapters;
  int64_t k = 64;
  double timeout = 120;
};

Result<DType> FloatingDType(const std::string& option, const std::string& name) {
  std::vector<std::string> known;
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kBfloat16, DType::kFloat16})
    known.emplace_back(Name(dtype));
  const auto dtype = ParseDType(name);
  if (!dtype || !Contains(known, name))
    return Fail(Problem(option + " is no dtype that can be probed", "'" + name + "'", Join(known, ", "),
                        DidYouMean(name, known)));
  return *dtype;
}

/// Properties that the arithmetic depends on: the processor and its matrix and vector instructions.
std::map<std::string, std::string> Machine() {
  std::map<std::string, std::string> machine;
  std::ifstream file("/proc/cpuinfo");
  const std::vector<std::string> wanted{"avx",         "avx2",        "fma",      "f16c",    "avx512f",
                                        "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_fp16"};
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || colon + 2 > line.size()) continue;
    const std::string value = line.substr(std::min(colon + 2, line.size()));
    if (line.starts_with("model name")) machine.emplace("cpu", value);
    if (!line.starts_with("flags") || machine.contains("isa")) continue;
    std::string& isa = machine["isa"];
    for (const auto& flag : wanted) {
      if ((" " + value + " ").find(" " + flag + " ") != std::string::npos)
        isa += (isa.empty() ? "" : " ") + flag;
    }
  }
  return machine;
}

Result<ProbeQuestion> QuestionOf(const ProbeArguments& arguments, const Registry& registry) {
  ProbeQuestion question;
  question.backend = ULPSCOPE_TRY(ParseBackend(arguments.backend, registry));
  ULPSCOPE_TRY(CheckInstalled(question.backend, question.backend.name, registry));
  question.dtype = ULPSCOPE_TRY(FloatingDType("--dtype", arguments.dtype));
  question.out = ULPSCOPE_TRY(
      FloatingDType("--out-dtype", arguments.out_dtype.empty() ? arguments.dtype : arguments.out_dtype));
  const auto& forms = ProbeForms();
  if (!Contains(forms, arguments.form))
    return Fail(Problem("--form is no form of a product", "'" + arguments.form + "'", Join(forms, ", "),
                        DidYouMean(arguments.form, forms)));
  question.form = arguments.form;
  constexpr int64_t kLongest = 65536;
  if (arguments.k < 1 || arguments.k > kLongest)
    return Fail(Problem("--k is no length of a sum", std::to_string(arguments.k),
                        "1 to " + std::to_string(kLongest)));
  question.k = arguments.k;
  question.timeout_s = arguments.timeout;
  return question;
}

int ExitCodeFor(const Datasheet& sheet) {
  switch (sheet.outcome) {
    case Datasheet::Outcome::kRead:
      return 0;
    case Datasheet::Outcome::kUnmodelled:
    case Datasheet::Outcome::kNondeterministic:
      return kExitNot;
    case Datasheet::Outcome::kRefused:
      return kExitNothing;
    case Datasheet::Outcome::kBroken:
      return kExitIncomplete;
  }
  return kExitNot;
}

/// Says whether the datasheet proves what is required, and turns the exit code accordingly.
int Answer(const ProbeArguments& arguments, const ValueDemand& demand, const Datasheet& sheet) {
  const int code = ExitCodeFor(sheet);
  if (sheet.outcome != Datasheet::Outcome::kRead && code != kExitNot) return code;
  const RequireAnswer answer = AnswerRequire(sheet, demand);
  const std::string line = fmt::format("--require {}: {}", arguments.require, answer.sentence);
  if (answer.verdict == ContractVerdict::kConforms && arguments.json != "-")
    Print("\n" + line + "\n");
  else
    PrintError("ulpscope: " + line);
  return answer.verdict == ContractVerdict::kConforms ? 0 : kExitNot;
}

Result<int> Probe(const ProbeArguments& arguments) {
  const auto demand = ULPSCOPE_TRY(ParseRequire(arguments.require));
  ULPSCOPE_TRY(CheckWritable("--json", arguments.json));
  auto workspace = ULPSCOPE_TRY(OpenWorkspace(arguments.adapters));
  PrintNotes(workspace.notes);
  const auto question = ULPSCOPE_TRY(QuestionOf(arguments, workspace.registry));
  Datasheet sheet;
  {
    auto session = ULPSCOPE_TRY(ProbeSession::Open(question, workspace.registry));
    sheet = ReadDatasheet(question, session.get());
    if (session->interrupted()) return kExitInterrupted;
  }
  sheet.machine = Machine();
  sheet.ulpscope = std::string(Version());
  const std::string json = arguments.json.empty() ? "" : WriteDatasheetJson(sheet);
  if (!arguments.json.empty() && arguments.json != "-") {
    ULPSCOPE_TRY(WriteFile(arguments.json, json));
  }
  Print(arguments.json == "-" ? json : WriteDatasheetText(sheet));
  if (sheet.outcome != Datasheet::Outcome::kRead)
    PrintError("ulpscope: " + Name(sheet.outcome) + ": " + sheet.reason);
  return arguments.require.empty() ? ExitCodeFor(sheet) : Answer(arguments, demand, sheet);
}

}  // namespace

void AddProbeCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("probe", "print a numerics datasheet of a backend's matrix product");
  ProbeArguments* arguments = OptionsOf(command, exit_code, Probe);
  command->add_option("backend", arguments->backend, "NAME[@DEVICE][:knob=value,...]")->required();
  command->add_option("--dtype", arguments->dtype, "of the operands (float32)");
  command->add_option("--out-dtype", arguments->out_dtype, "of the result (that of the operands)");
  command->add_option("--k", arguments->k, "terms of a sum (64)");
  command->add_option("--form", arguments->form, "matmul, bmm or dot: kernels differ by shape");
  command->add_option("--json", arguments->json,
                      "also write the datasheet as JSON here; - is stdout, instead of the text");
  command->add_option("--require", arguments->require,
                      "FACET=WORD[|WORD...],...: what a contract may say "
                      "(acc=at_least_float32,in=as_is,mid=none); exits 0 if "
                      "the datasheet proves it, else 1");
  command->add_option("--timeout", arguments->timeout, "seconds for one program")->check(CLI::PositiveNumber);
  AddAdapterOption(command, &arguments->adapters);
}

}  // namespace ulpscope
