// ulpscope doctor: is this machine fit to measure on, which backends can run, and what installs the others.
// With --adapter: does that adapter keep the protocol?
#include <fmt/format.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <cfenv>
#include <filesystem>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/load.h"
#include "harness/cli/choose_backends.h"
#include "harness/cli/commands.h"
#include "harness/cli/terminal.h"
#include "harness/conform/adapter_check.h"
#include "harness/judging/case_classifier.h"
#include "harness/run/hello.h"
#include "harness/run/scheduler.h"
#include "harness/workspace/recorded_run.h"
#include "harness/workspace/workspace.h"
#include "oracles/models.h"
#include "reports/console.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

struct DoctorArguments {
  std::string adapter, backend;
  std::vector<std::string> adapter_arguments, dtypes;
  double timeout = 60;
};

/// One line of the diagnosis.
struct Finding {
  enum class Mark { kGood, kAbsent, kBad } mark = Mark::kGood;
  std::string subject, text;
};

constexpr const char* kSelfCheckCase = R"(
about: the doctor's own
cases:
  - name: product
    tensors:
      x: {dtype: bfloat16, shape: [16, 8], fill: normal}
      y: {dtype: bfloat16, shape: [8, 16], fill: normal}
    program:
      - {op: empty, shape: [16, 16], dtype: float32, as: buffer}
      - {op: matmul, of: [x, y], out: buffer, as: product}
    observe: [product]
)";

constexpr const char* kSelfCheckModels[] = {"in=as_is;prod=exact;acc=float32;mid=none;out=float32_rne",
                                            "in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne",
                                            "in=as_is;prod=exact;acc=bfloat16;mid=none;out=float32_rne"};

Finding Good(std::string subject, std::string text) {
  return {.mark = Finding::Mark::kGood, .subject = std::move(subject), .text = std::move(text)};
}
Finding Bad(std::string subject, std::string text) {
  return {.mark = Finding::Mark::kBad, .subject = std::move(subject), .text = std::move(text)};
}

/// The floating-point environment of this process, which the oracle depends on.
std::vector<Finding> CheckEnvironment() {
  std::vector<Finding> findings;
#if defined(__x86_64__)
  const unsigned mxcsr = _mm_getcsr();
  constexpr unsigned kFlushBits = 0x8040;
  findings.push_back((mxcsr & kFlushBits) == 0
                         ? Good("MXCSR", fmt::format("{:#06x}, subnormals kept", mxcsr))
                         : Bad("MXCSR", fmt::format("{:#06x}: flush-to-zero is on in this process", mxcsr)));
#endif
  findings.push_back(std::fegetround() == FE_TONEAREST ? Good("rounding", "to nearest")
                                                       : Bad("rounding", "not to nearest"));
  volatile double tiny = 0x1p-1022;
  const double half = tiny * 0.5;
  findings.push_back(half == 0x1p-1023 ? Good("subnormals", "0x1p-1022 * 0.5 = 0x1p-1023")
                                       : Bad("subnormals", "0x1p-1022 * 0.5 is flushed to zero"));
  std::error_code code;
  const auto space = fs::space("/dev/shm", code);
  constexpr uint64_t kEnough = uint64_t{64} << 20;
  findings.push_back(
      !code && space.available >= kEnough
          ? Good("tmpfs", fmt::format("/dev/shm has {} MiB", space.available >> 20))
          : Bad("tmpfs", code ? "/dev/shm: " + code.message() : "/dev/shm has less than 64 MiB left"));
  return findings;
}

std::vector<Finding> CheckBackends(const Registry& registry) {
  std::vector<Finding> findings;
  for (const auto& row : registry.rows()) {
    const Availability availability = registry.Check(row);
    if (!availability.installed) {
      findings.push_back(
          {.mark = Finding::Mark::kAbsent, .subject = row.backend, .text = WhyAbsent(availability)});
      continue;
    }
    BackendSpec spec;
    spec.name = row.backend;
    const auto info = DescribeBackend(spec, registry);
    if (!info || !info->error.empty()) {
      Finding finding = Bad(row.backend, info ? info->error : info.error().Text());
      // A machine without the device is no fault of the machine's.
      if (info && row.device != "cpu") finding.mark = Finding::Mark::kAbsent;
      findings.push_back(std::move(finding));
      continue;
    }
    findings.push_back(Good(row.backend, info->versions.empty() ? "answers" : Join(info->versions)));
  }
  return findings;
}

class ObservationsByBackend : public RunObserver {
 public:
  void OnResult(const Case&, const BackendSpec& backend, const Observation& observation) override {
    observations[backend.Text()] = observation;
  }
  std::map<std::string, Observation> observations;
};

Result<std::map<std::string, Observation>> RunSelfCheck(const Case& test_case,
                                                        const std::vector<std::string>& backends,
                                                        const Registry& registry) {
  std::vector<BackendSpec> specs;
  for (const auto& backend : backends) {
    specs.push_back(ULPSCOPE_TRY(ParseBackend(backend, registry)));
  }
  const auto folder = ULPSCOPE_TRY(TemporaryFolder::Make());
  RunOptions options;
  options.out = folder.path() / "run";
  ObservationsByBackend kept;
  ULPSCOPE_TRY(RunCases(
      {test_case}, specs, registry, [](const Case& c) { return MakeInputs(c, 0); }, options, kept));
  return std::move(kept.observations);
}

/// The classifier's known answers: what is emulated at a model must be classified as a set that holds it.
std::vector<Finding> CheckClassifier(const Case& test_case, const Registry& registry) {
  std::vector<Finding> findings;
  const auto backend_of = [](const char* model) { return std::string("emulated:model=") + model; };
  const auto observed = RunSelfCheck(test_case, Mapped(kSelfCheckModels, backend_of), registry);
  if (!observed) return {Bad("classifier", observed.error().Text())};
  CaseClassifier classifier(test_case, 0);
  for (const char* model : kSelfCheckModels) {
    const auto truth = ParsePrecisionModel(model);
    const auto spec = ParseBackend(backend_of(model), registry);
    const Observation* entry = truth && spec ? Lookup(*observed, spec->Text()) : nullptr;
    if (entry == nullptr) {
      findings.push_back(Bad("classifier", std::string("nothing came back for ") + model));
      continue;
    }
    const Classified classified = classifier.Classify(*entry);
    const Classification* value = Lookup(classified.values, "product");
    if (value == nullptr) {
      const std::string why = classified.fault.empty() ? entry->outcome.text : classified.fault;
      findings.push_back(Bad("classifier", fmt::format("{}: {}", model, why)));
      continue;
    }
    const auto& proved = value->models_proved;
    const bool found = Contains(proved, *truth);
    const std::string text =
        fmt::format("{}: {} of {} models survive", model, proved.size(), value->models_tried);
    findings.push_back(found ? Good("classifier", text)
                             : Bad("classifier", text + ", the true one does not"));
  }
  return findings;
}

/// An output that is never written must be found.
Finding CheckPoison(const Case& test_case, const Registry& registry) {
  const auto observed = RunSelfCheck(test_case, {"faulty:fault=unwritten"}, registry);
  if (!observed) return Bad("poison", observed.error().Text());
  for (const auto& [backend, observation] : *observed) {
    if (!observation.unwritten.empty()) return Good("poison", "an output that is never written is found");
  }
  return Bad("poison", "an output that was never written was not found");
}

std::vector<Finding> CheckSelf(const Registry& registry) {
  const auto loaded = LoadCaseText(kSelfCheckCase, "doctor", "doctor", {});
  if (loaded.cases.empty())
    return {Bad("self check", loaded.errors.empty() ? "no case" : loaded.errors.front().Text())};
  const Case& test_case = loaded.cases.front();
  std::vector<Finding> findings;
  const auto installed = [&](std::string_view backend) {
    const RegistryRow* row = registry.Find(backend);
    return row != nullptr && registry.Check(*row).installed;
  };
  if (installed("emulated")) findings = CheckClassifier(test_case, registry);
  if (installed("faulty")) findings.push_back(CheckPoison(test_case, registry));
  if (findings.empty()) findings.push_back(Bad("self check", "neither emulated nor faulty is built"));
  return findings;
}

std::string CheckText(const CheckLine& line, const ConsoleOptions& options) {
  const char* mark = line.mark == CheckLine::Mark::kOk     ? "ok    "
                     : line.mark == CheckLine::Mark::kSkip ? "skip  "
                                                           : "FAIL  ";
  const std::string found = TerminalSafe(line.found);
  const std::string head = fmt::format("{}{:<28} ", mark, line.check);
  if (line.mark != CheckLine::Mark::kFail) return Wrap(head, found, options.columns);
  return Wrap(head, "found " + found + "; expected " + line.expected, options.columns);
}

/// The backends of the adapter that are to be checked: -b, or every one that it serves.
Result<std::vector<BackendSpec>> SubjectsOf(const DoctorArguments& arguments, Registry* registry) {
  auto served = ULPSCOPE_TRY(AddAdapter(*registry, arguments.adapter, arguments.adapter_arguments));
  if (!arguments.backend.empty()) {
    auto named = ULPSCOPE_TRY(ParseBackendList(arguments.backend, *registry));
    for (const BackendSpec& spec : named) {
      if (!Contains(served, spec.name))
        return Fail(Problem("this adapter does not serve " + spec.name, {}, Join(served, ", ")));
    }
    return named;
  }
  std::vector<BackendSpec> specs;
  for (const auto& name : served) specs.push_back({.name = name});
  return specs;
}

/// The conformance test of one adapter.
Result<int> RunAdapterCheck(const DoctorArguments& arguments) {
  auto workspace = ULPSCOPE_TRY(OpenWorkspace({}));
  Registry& registry = workspace.registry;
  const auto subjects = ULPSCOPE_TRY(SubjectsOf(arguments, &registry));
  const auto scratch = ULPSCOPE_TRY(Scratch::Create());
  std::vector<DType> dtypes;
  for (const auto& name : arguments.dtypes) {
    const auto dtype = ParseDType(name);
    if (!dtype || !IsFloating(*dtype)) {
      std::vector<std::string> known;
      for (const DType each : AllDTypes()) {
        if (IsFloating(each)) known.emplace_back(Name(each));
      }
      return Fail(Problem("--dtype is no floating dtype", "'" + name + "'", Join(known, ", "),
                          DidYouMean(name, known)));
    }
    dtypes.push_back(*dtype);
  }
  const ConsoleOptions options = DetectConsole();
  size_t passed = 0, failed = 0, skipped = 0;
  for (const BackendSpec& spec : subjects) {
    if (subjects.size() > 1) Print(TerminalSafe(spec.Text()) + "\n");
    const AdapterSubject subject{.backend = spec,
                                 .row = InEnvironment(*registry.Find(spec.name), spec.knobs),
                                 .timeout_s = arguments.timeout,
                                 .dtypes = dtypes};
    for (const CheckLine& line : CheckAdapter(subject, registry, *scratch)) {
      passed += line.mark == CheckLine::Mark::kOk;
      failed += line.mark == CheckLine::Mark::kFail;
      skipped += line.mark == CheckLine::Mark::kSkip;
      Print(CheckText(line, options));
    }
  }
  Print(fmt::format("{} passed, {} failed, {} skipped\n", passed, failed, skipped));
  return failed > 0 || passed == 0 ? 1 : 0;
}

Result<int> RunDoctor(const DoctorArguments& arguments) {
  if (!arguments.adapter.empty()) return RunAdapterCheck(arguments);
  auto workspace = ULPSCOPE_TRY(OpenWorkspace({}));
  std::vector<Finding> findings = CheckEnvironment();
  const auto append = [&](std::vector<Finding> more) {
    std::move(more.begin(), more.end(), std::back_inserter(findings));
  };
  append(CheckSelf(workspace.registry));
  append(CheckBackends(workspace.registry));
  const ConsoleOptions options = DetectConsole();
  std::string text;
  size_t bad = 0;
  for (const Finding& finding : findings) {
    const char* mark = finding.mark == Finding::Mark::kGood     ? "ok     "
                       : finding.mark == Finding::Mark::kAbsent ? "absent "
                                                                : "BAD    ";
    bad += finding.mark == Finding::Mark::kBad;
    text +=
        Wrap(fmt::format("{}{:<18} ", mark, finding.subject), TerminalSafe(finding.text), options.columns);
  }
  text += fmt::format("{} checks, {} bad\n", findings.size(), bad);
  Print(text);
  return bad == 0 ? 0 : 1;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("doctor", "check this machine and every backend, or one adapter");
  DoctorArguments* arguments = OptionsOf(command, exit_code, RunDoctor);
  command->add_option("--adapter", arguments->adapter,
                      "check whether this adapter keeps the protocol (an executable or a Python file)");
  command
      ->add_option("arguments", arguments->adapter_arguments, "what follows the adapter on its command line")
      ->needs("--adapter");
  command
      ->add_option("-b,--backend", arguments->backend,
                   "only these of the adapter's backends: NAME[@DEVICE][:knob=value,...]")
      ->needs("--adapter");
  command
      ->add_option(
          "--dtype", arguments->dtypes,
          "only these of the dtypes that the adapter claims, separated by commas (the others are skipped)")
      ->delimiter(',')
      ->needs("--adapter");
  command->add_option("--timeout", arguments->timeout, "seconds for one answer of the adapter")
      ->check(CLI::PositiveNumber);
}

}  // namespace ulpscope
