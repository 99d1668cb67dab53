// ulpscope run: cases on backends, the journal, the report.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "harness/base/text.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/prove.h"
#include "harness/cli/choose_backends.h"
#include "harness/cli/cli.h"
#include "harness/cli/commands.h"
#include "harness/cli/knob_sweep.h"
#include "harness/cli/progress.h"
#include "harness/cli/recorded_cases.h"
#include "harness/cli/report_details.h"
#include "harness/cli/run_judge.h"
#include "harness/cli/run_report_files.h"
#include "harness/cli/select.h"
#include "harness/cli/shard_auto.h"
#include "harness/cli/terminal.h"
#include "harness/cli/workspace.h"
#include "harness/record/observation_json.h"
#include "harness/run/scheduler.h"
#include "harness/words/knobs.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

struct RunArguments {
  std::vector<std::string> cases;
  std::string backends, expression, tags, out, shard, oracle = "fast";
  std::vector<std::string> knobs, adapters;
  int jobs = 1, repeat = 2;
  int64_t seed = 0;
  double timeout = 120;
  bool resume = false, last_failed = false, no_trace = false, no_steps = false, quiet = false,
       verbose = false, knob_sweep = false;
  ReportOutputs outputs;
};

/// An oracle keeps its inputs and sums; above this many input elements it is opened anew for each backend.
constexpr int64_t kMostKeptElements = 1 << 18;

/// What a run needs, found and checked before anything is started.
struct Preparation {
  Workspace workspace;
  std::vector<BackendSpec> backends;
  std::map<std::string, std::string> not_installed;
  KnobSweep sweep;
  std::vector<PlannedCase> plan = {};  ///< of a shard and of a sweep: see RunHeader
};

/// Ids of the results in `file` (a report.json) that failed.
Result<std::set<std::string>> FailedIds(const fs::path& file) {
  std::ifstream stream(file);
  if (!stream) return Fail("--lf: no earlier run here (" + file.string() + " cannot be read)");
  const auto json = nlohmann::json::parse(stream, nullptr, false);
  if (!json.is_object() || !json.contains("results") || !json["results"].is_array())
    return Fail("--lf: " + file.string() + " is no report");
  static const std::set<std::string> kGood{"PASS", "SKIP", "XFAIL"};
  std::set<std::string> failed;
  for (const auto& result : json["results"]) {
    if (!result.is_object()) continue;
    if (!kGood.contains(result.value("status", "PASS"))) failed.insert(result.value("id", ""));
  }
  return failed;
}

Steps StepsOf(const RunArguments& arguments) {
  return arguments.knob_sweep || arguments.no_steps ? Steps::kTogether : Steps::kOpened;
}

/// "2/3", or what the scheduler says that started this process.
Result<Shard> ShardFor(const std::string& text) {
  if (text != "auto") return ParseShard(text);
  const auto found = ShardOfEnvironment([](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
  if (!found) return Fail(found.error());
  // A test runner that does not see its file takes it that every shard runs everything.
  if (!found->status_file.empty()) {
    if (auto written = WriteFile(found->status_file, ""); !written) return Fail(written.error());
  }
  return found->shard;
}

std::vector<PlannedCase> PlanOf(const std::vector<Case>& cases, const Preparation& prepared) {
  std::vector<PlannedCase> plan;
  for (const Case& test_case : cases) {
    PlannedCase planned{.id = test_case.id, .digest = CaseDigest(test_case)};
    for (const BackendSpec& backend : prepared.backends) {
      if (IsSwept(prepared.sweep.swept, test_case, backend.Text()))
        planned.backends.push_back(backend.Text());
    }
    if (planned.backends.empty()) continue;
    if (planned.backends.size() == prepared.backends.size()) planned.backends.clear();
    plan.push_back(std::move(planned));
  }
  return plan;
}

/// The cases of this run, and of a shard the plan that it belongs to.
Result<std::vector<Case>> Select(std::vector<Case> cases, const RunArguments& arguments,
                                 Preparation* prepared) {
  const auto keep = [&](auto wanted) { std::erase_if(cases, [&](const Case& c) { return !wanted(c); }); };
  if (!arguments.expression.empty()) {
    const auto expression = IdExpression::Parse(arguments.expression);
    if (!expression) return Fail(expression.error());
    keep([&](const Case& c) { return expression->Matches(c.id); });
  }
  if (arguments.knob_sweep && arguments.cases.empty() && arguments.tags.empty())
    keep([&](const Case& c) { return HasTag(c, "knobs"); });
  if (!arguments.tags.empty()) keep([&](const Case& c) { return HasTag(c, arguments.tags); });
  if (arguments.last_failed) {
    const auto failed = FailedIds("runs/latest/report.json");
    if (!failed) return Fail(failed.error());
    keep([&](const Case& c) { return failed->contains(c.id); });
  }
  if (arguments.knob_sweep || !arguments.shard.empty())
    prepared->plan = PlanOf(WithCompanions(cases, StepsOf(arguments)), *prepared);
  if (!arguments.shard.empty()) {
    const auto shard = ShardFor(arguments.shard);
    if (!shard) return Fail(shard.error());
    return TakeShard(std::move(cases), *shard);
  }
  return cases;
}

/// Progress, and classification while the workers go on: each is recorded as it is found, and what an earlier
/// session of a resumed run has found is not asked again.
class Watcher : public RunObserver {
 public:
  Watcher(const Workspace& workspace, int64_t seed, OracleEngine engine, size_t backends,
          Progress::Style style)
      : workspace_(workspace),
        seed_(seed),
        engine_(engine),
        backends_(backends),
        progress_("running", style) {}

  void OnStart(int64_t total, const RunSummary& summary) override {
    progress_.Start(total);
    Note(RecordCases(workspace_, summary.dir, summary.id));
    if (const auto run = ReadRun(summary.dir, TensorLoading::kLater); Note(run)) {
      if (auto before = ReadClassified(*run); Note(before)) recorded_ = std::move(before->results);
    }
    if (auto writer = ClassifiedWriter::Open(summary.dir, summary.id); Note(writer))
      writer_ = std::move(*writer);
  }
  void OnBegin(const Case& test_case, const BackendSpec& backend) override {
    progress_.Now(backend.Text() + "  " + test_case.id);
  }
  void OnResult(const Case& test_case, const BackendSpec& backend, const Observation& observation) override {
    auto& classifier = classifiers_[test_case.id];
    if (classifier == nullptr) classifier = std::make_unique<CaseClassifier>(test_case, seed_, engine_);
    if (writer_ && !recorded_.contains({test_case.id, backend.Text()})) {
      Note(writer_->Store(test_case.id, CaseDigest(test_case), backend.Text(),
                          classifier->Classify(observation)));
    }
    if (++seen_[test_case.id] == backends_ || InputElements(test_case) > kMostKeptElements) {
      counts_ += classifier->Counts();
      classifiers_.erase(test_case.id);
    }
    progress_.Step(fmt::format("{}  {}  {}", backend.Text(), test_case.id, Name(observation.outcome.kind)));
  }
  void OnEnd(const RunSummary&) override {
    progress_.End();
    if (writer_) Note(writer_->Oracle(std::string(Name(engine_)), Counts()));
  }

  /// The first thing that could not be recorded.
  const std::optional<Error>& error() const { return error_; }

 private:
  template <class T>
  bool Note(const Result<T>& result) {
    if (!result && !error_) error_ = result.error();
    return result.has_value();
  }

  /// What the oracles have done, those of cases that some backend never answered included.
  OracleCounts Counts() const {
    OracleCounts counts = counts_;
    for (const auto& [id, classifier] : classifiers_) counts += classifier->Counts();
    return counts;
  }

  static int64_t InputElements(const Case& test_case) {
    int64_t elements = 0;
    for (const auto& tensor : test_case.tensors) elements += ElementCount(tensor.shape);
    return elements;
  }

  const Workspace& workspace_;
  int64_t seed_;
  OracleEngine engine_;
  size_t backends_;
  Progress progress_;
  OracleCounts counts_;
  std::map<std::string, std::unique_ptr<CaseClassifier>> classifiers_;  ///< until every backend has answered
  std::map<std::string, size_t> seen_;
  std::optional<ClassifiedWriter> writer_;
  std::map<std::pair<std::string, std::string>, Classified> recorded_;
  std::optional<Error> error_;
};

Progress::Style StyleFor(const RunArguments& arguments) {
  if (arguments.quiet) return Progress::Style::kSilent;
  return IsTerminal(STDERR_FILENO) ? Progress::Style::kBar : Progress::Style::kLines;
}

RunOptions OptionsFor(const RunArguments& arguments) {
  RunOptions options;
  options.jobs = arguments.jobs;
  options.repeat = arguments.repeat;
  options.timeout_s = arguments.timeout;
  options.seed = arguments.seed;
  options.trace = !arguments.no_trace;
  options.resume = arguments.resume;
  options.out = arguments.out;
  return options;
}

int Execute(const Preparation& prepared, const RunArguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  const OracleEngine engine = arguments.oracle == "boost" ? OracleEngine::kBoost : OracleEngine::kFast;
  Watcher watcher(prepared.workspace, arguments.seed, engine, prepared.backends.size(), StyleFor(arguments));
  const InputProvider inputs = [&](const Case& test_case) { return MakeInputs(test_case, arguments.seed); };
  RunOptions options = OptionsFor(arguments);
  options.not_installed = prepared.not_installed;
  options.swept = prepared.sweep.swept;
  options.plan = prepared.plan;
  const auto summary = RunCases(WithCompanions(prepared.workspace.cases, StepsOf(arguments)),
                                prepared.backends, prepared.workspace.registry, inputs, options, watcher);
  if (!summary) return UsageError(summary.error());
  if (watcher.error()) return UsageError(*watcher.error());
  const auto run = ReadRun(summary->dir, TensorLoading::kLater);
  if (!run) return UsageError(run.error());
  auto classified = ReadClassified(*run);
  if (!classified) return UsageError(classified.error());
  // A resumed run covers what it covered before, also where another selection resumes it.
  Workspace workspace = prepared.workspace;
  if (auto taken = TakeRecorded(*run, &workspace); !taken) return UsageError(taken.error());
  auto report = JudgeRun(*run, workspace, &*classified, engine);
  if (!report) return UsageError(report.error());
  report->durations_s["run"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (auto written = WriteReportFiles(*report, DetailsOf(*run, workspace), summary->dir, arguments.outputs);
      !written)
    return UsageError(written.error());
  if (!arguments.outputs.TakesStdout()) {
    ConsoleOptions console = DetectConsole();
    console.verbosity = arguments.quiet     ? ConsoleOptions::Verbosity::kQuiet
                        : arguments.verbose ? ConsoleOptions::Verbosity::kVerbose
                                            : ConsoleOptions::Verbosity::kNormal;
    if (arguments.knob_sweep) console.subject = ConsoleOptions::Subject::kKnobs;
    Print(WriteConsole(*report, console));
  }
  if (!arguments.quiet) PrintError("run folder: " + summary->dir.string());
  const int code = ExitCode(*report, summary->interrupted ? Interruption::kInterrupted : Interruption::kNone);
  if (!arguments.shard.empty()) return code == kExitNothing ? 0 : code;  // of the parts, merge decides
  const auto unprobed =
      summary->interrupted ? std::vector<std::string>() : UnprobedKnobs(prepared.sweep, *report);
  for (const auto& line : unprobed) PrintError("ulpscope: " + line);
  return code == 0 && !unprobed.empty() ? kExitNot : code;
}

int Run(const RunArguments& arguments) {
  if (auto checked = CheckOutputs(arguments.outputs); !checked) return UsageError(checked.error());
  auto workspace = OpenWorkspace(arguments.adapters);
  if (!workspace) return UsageError(workspace.error());
  Preparation prepared{.workspace = std::move(*workspace), .backends = {}, .not_installed = {}, .sweep = {}};
  if (const auto errors = LoadInto(&prepared.workspace, arguments.cases); !errors.empty()) {
    for (const Error& error : errors) PrintError(error);
    PrintError(fmt::format("ulpscope: {} error{} in the cases, nothing was run", errors.size(),
                           errors.size() == 1 ? "" : "s"));
    return kExitUsage;
  }
  auto chosen =
      ChooseBackends({.list = arguments.backends, .knobs = arguments.knobs}, prepared.workspace.registry);
  if (!chosen) return UsageError(chosen.error());
  prepared.backends = std::move(chosen->backends);
  prepared.not_installed = std::move(chosen->not_installed);
  if (arguments.knob_sweep) {
    auto sweep = SweepKnobs(prepared.workspace.registry, prepared.backends);
    if (!sweep) return UsageError(sweep.error());
    prepared.sweep = std::move(*sweep);
    prepared.backends = prepared.sweep.backends;
    for (const auto& why : prepared.sweep.left_out) PrintError("ulpscope: not asked: " + why);
  }
  auto selected = Select(std::move(prepared.workspace.cases), arguments, &prepared);
  if (!selected) return UsageError(selected.error());
  prepared.workspace.cases = std::move(*selected);
  // A part without a case is still a part: whoever merges all of them finds it, and it says whose plan it belongs to.
  if ((prepared.workspace.cases.empty() && prepared.plan.empty()) || prepared.backends.empty()) {
    PrintError(prepared.backends.empty()
                   ? "ulpscope: no backend is installed; ulpscope doctor says what is missing"
                   : "ulpscope: no case is selected");
    return kExitNothing;
  }
  return Execute(prepared, arguments);
}

/// What a number is read as must be what it says: no octal, nothing cut off.
std::string CheckSeed(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool plain =
      error == std::errc() && end == text.data() + text.size() && std::to_string(number) == text;
  return plain ? "" : "'" + text + "' is no whole number from -2^63 to 2^63-1";
}

std::string CheckSeconds(const std::string& text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  constexpr double kMost = 1e6;
  const bool good =
      error == std::errc() && end == text.data() + text.size() && seconds > 0 && seconds <= kMost;
  return good ? "" : "'" + text + "' is no number of seconds above 0 and up to a million";
}

}  // namespace

void AddRunCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "run cases on backends and print the matrix");
  command->add_option("cases", arguments->cases,
                      "ids, id prefixes, files or folders (default: the whole suite)");
  command->add_option("-b,--backends", arguments->backends,
                      "NAME[@DEVICE][:knob=value,...], joined by commas; `all` for every known one (default: "
                      "every installed one)");
  command->add_option("-k", arguments->expression, "only ids that match: substrings with and, or, not, ( )");
  command->add_option("-m", arguments->tags,
                      "only cases with one of these tags; tiers nest: smoke < ci < nightly");
  command->add_option("-j,--jobs", arguments->jobs, "workers at a time; results do not depend on it")
      ->check(CLI::Range(1, 64));
  command->add_option("--seed", arguments->seed, "seed of the inputs")
      ->check(CLI::Validator(CheckSeed, "INT"));
  command->add_option("--knob", arguments->knobs, "K=V for every backend that takes K")
      ->allow_extra_args(false);
  command->add_flag(
      "--knob-sweep", arguments->knob_sweep,
      "every value of every knob of each backend against its default, on the cases tagged with the "
      "knob's name (without cases: those tagged `knobs`); prints what each was asked, read back, did");
  command->add_option("-o,--out", arguments->out, "run folder (default: runs/<UTC>-<id>)");
  command->add_flag("--resume", arguments->resume, "go on with the run in -o DIR")->needs("--out");
  command->add_flag("--lf", arguments->last_failed, "only cases that failed in runs/latest");
  command->add_option("--timeout", arguments->timeout, "seconds for one case")
      ->check(CLI::Validator(CheckSeconds, "SECONDS"));
  command->add_option("--repeat", arguments->repeat, "runs of each case, compared bit by bit")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--oracle", arguments->oracle,
                   "fast: the certified fast path, compared with Boost; boost: Boost alone")
      ->check(CLI::IsMember({"fast", "boost"}));
  command->add_flag("--no-steps", arguments->no_steps,
                    "do not run programs once more with every intermediate observed: each value is judged "
                    "as one with all that it is computed from");
  command->add_flag("--no-trace", arguments->no_trace, "do not ask for casts");
  command->add_option("--adapter", arguments->adapters, "an adapter outside this tree")
      ->allow_extra_args(false);
  command->add_option("--shard", arguments->shard,
                      "i/n: one of n parts of the run, which `merge` puts together; auto: as Slurm, GitLab, "
                      "Kubernetes, GitHub, Bazel or GoogleTest say");
  AddReportOptions(command, &arguments->outputs);
  command->add_flag("-q,--quiet", arguments->quiet, "only failures and counts");
  command->add_flag("-v,--verbose", arguments->verbose, "also differences of order and of casts");
  command->callback([arguments, &exit_code] { exit_code = Run(*arguments); });
}

}  // namespace ulpscope
