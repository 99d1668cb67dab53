// ulpscope run: cases on backends, the journal, the report.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "harness/base/deadline.h"
#include "harness/base/find.h"
#include "harness/base/sha256.h"
#include "harness/base/text.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/open.h"
#include "harness/casefile/prove.h"
#include "harness/cli/commands.h"
#include "harness/cli/exit_codes.h"
#include "harness/cli/failure_count.h"
#include "harness/cli/frozen_plan.h"
#include "harness/cli/knob_sweep.h"
#include "harness/cli/progress.h"
#include "harness/cli/report_details.h"
#include "harness/cli/run_report_files.h"
#include "harness/cli/run_selection.h"
#include "harness/cli/terminal.h"
#include "harness/cli/watched_files.h"
#include "harness/hybrid/hybrid_runs.h"
#include "harness/hybrid/strands.h"
#include "harness/judging/run_judge.h"
#include "harness/record/observation_json.h"
#include "harness/run/scheduler.h"
#include "harness/workspace/recorded_cases.h"
#include "harness/workspace/time_limit.h"
#include "harness/workspace/workspace.h"
#include "oracles/oracle.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

struct RunArguments {
  Selection selection;
  std::string out, plan, oracle = "fast", schedule;
  int jobs = 1;
  double timeout = 120, minutes = 0;  ///< 0 minutes: without a limit
  int durations = 0;                  ///< so many of the slowest results are printed
  bool resume = false, quiet = false, verbose = false, exit_first = false, watch = false, remedies = false;
  int64_t max_failures = 0;  ///< 0: the run goes on whatever fails
  ReportOutputs outputs;
  Said said;
};

/// An oracle keeps its inputs and sums; above this many input elements it is opened anew for each backend.
constexpr int64_t kMostKeptElements = 1 << 18;

/// Of results that wait for their classification: workers wait for memory, not for the judge.
constexpr size_t kMostWaitingBytes = size_t{256} << 20;

size_t BytesOf(const Observation& observation) {
  size_t bytes = sizeof observation + observation.trace.size() * sizeof(TraceNode);
  for (const auto& [name, tensor] : observation.values) bytes += tensor.bytes.size();
  return bytes;
}

/// Progress, and classification on all cores while the workers go on: each is recorded as it is found, and what an earlier
/// session of a resumed run has found is not asked again.
class Watcher : public RunObserver {
 public:
  /// `failures`: judges every cell as soon as its last result is there. None: nobody asks how many fail.
  Watcher(const Workspace& workspace, int64_t seed, OracleEngine engine, size_t backends,
          Progress::Style style, std::optional<FailureCount> failures, TimeLimitWatch* limit,
          const RunHold& hold)
      : workspace_(workspace),
        seed_(seed),
        engine_(engine),
        backends_(backends),
        progress_("running", style),
        failures_(std::move(failures)),
        limit_(*limit),
        hold_(hold),
        strands_(failures_ ? 1 : std::thread::hardware_concurrency(), kMostWaitingBytes) {}

  Result<void> OnFolder(const RunSummary& summary) override {
    return RecordCases(workspace_, summary.dir, summary.id);
  }
  void OnStart(int64_t total, const RunSummary& summary) override {
    limit_.Begin(*hold_.interrupt);
    progress_.Start(total, limit_.minutes());
    if (failures_) {
      failures_->Began(summary.started);
      for (const auto& [backend, versions] : summary.versions) failures_->SetVersions(backend, versions);
    }
    if (const auto run = ReadRun(summary.dir, TensorLoading::kLater); Note(run)) {
      if (auto before = OpenClassified(*run); Note(before)) recorded_ = std::move(before->recorded);
    }
    if (auto writer = ClassifiedWriter::Open(summary.dir, summary.id); Note(writer))
      writer_ = std::move(*writer);
  }
  void OnVersions(const BackendSpec& backend, const std::map<std::string, std::string>& versions) override {
    if (failures_) failures_->SetVersions(backend.Text(), versions);
  }
  void OnBegin(const Case& test_case, const BackendSpec& backend) override {
    const std::lock_guard lock(mutex_);
    progress_.Now(backend.Text() + "  " + test_case.id);
  }
  void OnResult(const Case& test_case, const BackendSpec& backend, const Observation& observation) override {
    const bool judged_later = IsChangedByObserving(test_case, backend, observation);
    strands_.Post(test_case.id, BytesOf(observation), [this, &test_case, backend, observation, judged_later] {
      const auto began = std::chrono::steady_clock::now();
      const bool judged = BeforeDeadline([&] { Judge(test_case, backend, observation, judged_later); });
      const std::lock_guard lock(mutex_);
      // The result is recorded; its judgement can be had from there.
      if (!judged) classifiers_.erase(test_case.id);
      classifying_ += std::chrono::steady_clock::now() - began;
    });
    // Whoever counts failures asks after each result.
    if (failures_) strands_.Wait();
  }
  void OnRecorded(const Case& test_case, const BackendSpec& backend,
                  const Observation& observation) override {
    OnResult(test_case, backend, observation);
    // What has failed before is why the run stopped; that it goes on is what was asked for.
    if (failures_) failures_->Forget();
  }
  int64_t StopAfter() override { return failures_ && failures_->Enough() ? failures_->failures() : 0; }
  void OnEnd(const RunSummary&) override {
    workers_ended_ = std::chrono::steady_clock::now();
    strands_.Wait();
    progress_.End();
    if (writer_) Note(writer_->Oracle(std::string(Name(engine_)), Counts()));
  }

  /// The first thing that could not be recorded.
  const std::optional<Error>& error() const { return error_; }

  /// Once the run has ended, in seconds: what its threads classified beside the workers, how long workers waited for that, and
  /// when the last of them was done.
  struct Times {
    double classifying = 0, workers_waited = 0;
    std::chrono::steady_clock::time_point workers_ended;
  };
  Times times() const {
    return {.classifying = classifying_.count(),
            .workers_waited = strands_.waited().count(),
            .workers_ended = workers_ended_};
  }

 private:
  /// Whether this is a program with all steps observed that gives other bits than the requested one. Its steps are judged once the run
  /// has ended, and only where the ledger has no better evidence (harness/judging/opened_record.h).
  bool IsChangedByObserving(const Case& test_case, const BackendSpec& backend,
                            const Observation& observation) {
    const bool is_opened = IsOpened(test_case);
    if (!is_opened && !CanBeOpened(test_case)) return false;
    std::map<std::string, std::string> digests;
    for (const auto& [name, tensor] : observation.values) digests[name] = Sha256(tensor.bytes);
    const std::lock_guard lock(mutex_);
    if (!is_opened) {
      requested_[{test_case.id, backend.Text()}] = std::move(digests);
      return false;
    }
    const auto requested = requested_.extract({test_case.companion_of, backend.Text()});
    return requested && std::ranges::any_of(requested.mapped(), [&](const auto& each) {
             const std::string* again = Lookup(digests, each.first);
             return again != nullptr && *again != each.second;
           });
  }

  /// Of one case in one thread at a time.
  void Judge(const Case& test_case, const BackendSpec& backend, const Observation& observation,
             bool judged_later) {
    CaseClassifier* classifier = nullptr;
    bool is_known = true;
    {
      const std::lock_guard lock(mutex_);
      auto& kept = classifiers_[test_case.id];
      if (kept == nullptr) kept = std::make_unique<CaseClassifier>(test_case, seed_, engine_);
      classifier = kept.get();
      is_known = judged_later || !writer_ || (recorded_ && recorded_->Has(test_case.id, backend.Text()));
    }
    std::optional<Classified> found;
    if (!is_known) found = classifier->Classify(observation);
    const std::lock_guard lock(mutex_);
    if (found) Note(writer_->Store(test_case.id, CaseDigest(test_case), backend.Text(), *found));
    if (failures_) Note(failures_->Add(test_case, backend.Text(), observation));
    const bool last = ++seen_[test_case.id] == backends_;
    if (last) seen_.erase(test_case.id);
    if (last || InputElements(test_case) > kMostKeptElements) {
      counts_ += classifier->Counts();
      classifiers_.erase(test_case.id);
    }
    progress_.Step(fmt::format("{}  {}  {}", backend.Text(), test_case.id, Name(observation.outcome.kind)));
  }

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
  /// (case, backend) -> digests of its observed values.
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::string>> requested_;
  std::optional<ClassifiedWriter> writer_;
  std::shared_ptr<const RecordedClassifications> recorded_;
  std::optional<FailureCount> failures_;
  TimeLimitWatch& limit_;
  const RunHold& hold_;
  std::optional<Error> error_;
  std::chrono::duration<double> classifying_{0};
  std::chrono::steady_clock::time_point workers_ended_;
  std::mutex mutex_;  ///< of all that jobs and the run share
  Strands strands_;   ///< last: it ends before what its jobs use
};

Progress::Style StyleFor(const RunArguments& arguments) {
  if (arguments.quiet) return Progress::Style::kSilent;
  return IsTerminal(STDERR_FILENO) ? Progress::Style::kBar : Progress::Style::kLines;
}

/// "1,1,3"; empty where it is no schedule.
std::vector<int> ScheduleOf(const std::string& text) {
  constexpr int kMost = 1000;
  std::vector<int> schedule;
  for (const auto& part : SplitOutsideParentheses(text, ',')) {
    const auto count = WholeNumber<int>(part);
    if (!count || *count < 0 || *count > kMost) return {};
    schedule.push_back(*count);
  }
  return schedule.size() == 3 && schedule[2] > 0 ? schedule : std::vector<int>();
}

std::string CheckSchedule(const std::string& text) {
  return ScheduleOf(text).empty()
             ? "'" + text + "' is no schedule: three counts WAIT,WARMUP,ACTIVE up to 1000, the last above 0"
             : "";
}

RunOptions OptionsFor(const RunArguments& arguments, const Selection& selection) {
  RunOptions options;
  options.jobs = arguments.jobs;
  options.repeat = selection.repeat;
  options.timeout_s = arguments.timeout;
  options.startup_timeout_s = std::max(options.startup_timeout_s, arguments.timeout);
  options.seed = selection.seed;
  options.trace = !selection.no_trace;
  options.schedule = ScheduleOf(arguments.schedule);
  options.in_step = arguments.max_failures > 0;
  options.resume = arguments.resume;
  options.out = arguments.out;
  return options;
}

/// The results that took longest between question and answer, start-up and judging apart.
std::string SlowestResults(const RecordedRun& run, int most) {
  std::vector<std::pair<double, std::string>> all;
  for (const RecordedResult& result : run.results) {
    if (const double* took = Lookup(result.observation.durations_ms, "exchange"))
      all.emplace_back(*took, fmt::format("{}  {}", result.backend, result.case_id));
  }
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.first > b.first; });
  const size_t kept = std::min(all.size(), static_cast<size_t>(most));
  std::string text = fmt::format("slowest {} of {} results\n", kept, all.size());
  for (size_t i = 0; i < kept; ++i) text += fmt::format("{:>12.1f} ms  {}\n", all[i].first, all[i].second);
  return text;
}

std::string StoppedSentence(const RunReport& report, const RecordedRun& run, const std::string& flags) {
  const std::string again =
      fmt::format("{}--resume -o {} goes on", flags.empty() ? "" : flags + " ", ShellQuote(run.dir.string()));
  if (report.limit)
    return fmt::format("ulpscope: {} came: {}; {}", LimitText(report.limit->minutes),
                       Join(report.limit->left_out, ", "), again);
  const ResultIndex recorded(run);
  const auto left = [&](bool was_run) {
    return std::ranges::count_if(report.results, [&](const CaseResult& result) {
      return result.status == Status::kNotRun &&
             (recorded.Find(result.id, result.backend) != nullptr) == was_run;
    });
  };
  const std::string why =
      report.stopped_after == 0 ? "interrupted" : "stopped after " + Counted(report.stopped_after, "failure");
  std::string what = fmt::format("{} of {} results not run", left(false), report.results.size());
  if (left(true) > 0) what += fmt::format(", {} run and not judged", left(true));
  return fmt::format("ulpscope: {}: {}; {}", why, what, again);
}

Result<RunSummary> RunPrepared(const Preparation& prepared, const RunArguments& arguments,
                               OracleEngine engine, Watcher::Times* times, TimeLimitWatch* limit,
                               RunHold* hold) {
  const Selection& selection = prepared.selection;
  const std::vector<Case> cases = WithCompanions(prepared.workspace.cases, StepsOf(selection));
  std::optional<FailureCount> failures;
  if (arguments.max_failures > 0)
    failures.emplace(prepared.workspace, cases, selection.seed, engine, arguments.max_failures);
  Watcher watcher(prepared.workspace, selection.seed, engine, prepared.backends.size(), StyleFor(arguments),
                  std::move(failures), limit, *hold);
  const InputProvider inputs = [&](const Case& test_case) { return MakeInputs(test_case, selection.seed); };
  RunOptions options = OptionsFor(arguments, selection);
  options.not_installed = prepared.not_installed;
  options.swept = prepared.sweep.swept;
  options.plan = prepared.plan;
  auto summary =
      RunCases(cases, prepared.backends, prepared.workspace.registry, inputs, options, watcher, hold);
  *times = watcher.times();
  if (summary && watcher.error()) return Fail(*watcher.error());
  return summary;
}

Result<int> Execute(Preparation prepared, const RunArguments& arguments) {
  const Selection& selection = prepared.selection;
  const auto begin = std::chrono::steady_clock::now();
  const OracleEngine engine = arguments.oracle == "boost" ? OracleEngine::kBoost : OracleEngine::kFast;
  Watcher::Times times;
  RunHold hold;  // until the last report is written
  TimeLimitWatch limit(arguments.minutes);
  auto summary = ULPSCOPE_TRY(RunPrepared(prepared, arguments, engine, &times, &limit, &hold));
  const auto run = ULPSCOPE_TRY(ReadRun(summary.dir, TensorLoading::kLater));
  auto classified = ULPSCOPE_TRY(OpenClassified(run));
  // A resumed run covers what it covered before, also where another selection resumes it.
  Workspace& workspace = prepared.workspace;
  ULPSCOPE_TRY(TakeRecorded(run, &workspace));
  if (!hold.interrupt->IsRaised()) {
    ULPSCOPE_TRY(RunHybrids(run, workspace, OptionsFor(arguments, selection),
                            arguments.remedies ? Remedies::kTry : Remedies::kLeaveOut, hold.interrupt->fd()));
  }
  const auto writer = ULPSCOPE_TRY(ClassifiedWriter::Open(summary.dir, summary.id));
  const auto signalled = [&] { return hold.interrupt->IsRaised() && !limit.EndedRun(); };
  auto report = ULPSCOPE_TRY(JudgeRun(run, workspace, &classified,
                                      {.engine = engine,
                                       .exclusions = JudgeRunOptions::Exclusions::kShown,
                                       .found = JudgeRunOptions::Found::kDropped,
                                       .writer = &writer,
                                       .limit_minutes = signalled() ? 0 : arguments.minutes}));
  const auto now = std::chrono::steady_clock::now();
  report.durations_s["run"] = std::chrono::duration<double>(now - begin).count();
  report.durations_s["classifying"] = times.classifying;
  report.durations_s["workers_waited"] = times.workers_waited;
  report.durations_s["after_workers"] = std::chrono::duration<double>(now - times.workers_ended).count();
  ULPSCOPE_TRY(WriteReportFiles(report, DetailsOf(run, workspace), summary.dir, arguments.outputs));
  if (!arguments.outputs.TakesStdout()) {
    ConsoleOptions console = DetectConsole();
    console.verbosity = arguments.quiet     ? ConsoleOptions::Verbosity::kQuiet
                        : arguments.verbose ? ConsoleOptions::Verbosity::kVerbose
                                            : ConsoleOptions::Verbosity::kNormal;
    if (selection.knob_sweep) console.subject = ConsoleOptions::Subject::kKnobs;
    Print(WriteConsole(report, console));
    if (arguments.durations > 0) Print("\n" + SlowestResults(run, arguments.durations));
  }
  // While it was judged or rendered, too.
  summary.interrupted = signalled();
  if (!arguments.quiet) PrintError("run folder: " + summary.dir.string());
  if (summary.stopped_after > 0 || summary.interrupted || report.limit)
    PrintError(StoppedSentence(report, run, workspace.ExtraFlags()));
  const int code =
      SaidExitCode(report, summary.interrupted ? Interruption::kInterrupted : Interruption::kNone);
  if (!selection.shard.empty()) return code == kExitNothing ? 0 : code;  // of the parts, merge decides
  const auto unprobed =
      summary.interrupted ? std::vector<std::string>() : UnprobedKnobs(prepared.sweep, report);
  for (const auto& line : unprobed) PrintError("ulpscope: " + line);
  return code == 0 && !unprobed.empty() ? kExitNot : code;
}

/// What is run goes into `watched`, as it was before it was read or right after.
Result<int> RunOnce(const RunArguments& arguments, WatchedFiles* watched) {
  ULPSCOPE_TRY(CheckOutputs(arguments.outputs, arguments.out.empty() ? "runs/latest" : arguments.out));
  Selection selection = arguments.selection;
  std::optional<FrozenPlan> frozen;
  if (!arguments.plan.empty()) {
    auto read = ULPSCOPE_TRY(ReadFrozenPlan(arguments.plan));
    selection = read.selection;
    selection.shard = arguments.selection.shard;
    frozen = std::move(read);
  }
  std::optional<RecordedRun> resumed;
  if (arguments.resume && !frozen) {
    resumed = ULPSCOPE_TRY(ReadToResume(arguments.out, selection));
    if (resumed) TakeUnsaid(*resumed, arguments.said, &selection);
  }
  auto prepared = ULPSCOPE_TRY(Prepare(selection, std::move(frozen), resumed ? &*resumed : nullptr));
  if (!prepared) return kExitNothing;
  watched->Add(prepared->workspace);
  if (prepared->frozen) {
    ULPSCOPE_TRY(CheckAgainst(*prepared->frozen, *prepared));
  }
  return Execute(*std::move(prepared), arguments);
}

volatile std::sig_atomic_t g_watch_ends = 0;

/// Runs again whenever a file that the last run read is another one; SIGINT ends it with the code of the last run, or of the one that
/// it cut short.
int Watch(const RunArguments& arguments) {
  constexpr auto kLook = std::chrono::milliseconds(100);
  struct sigaction end {};
  end.sa_handler = [](int) { g_watch_ends = 1; };
  ::sigaction(SIGINT, &end, nullptr);
  ::sigaction(SIGTERM, &end, nullptr);
  WatchedFiles watched;
  while (true) {
    WatchedFiles now;
    for (const auto& file : watched.files()) now.Add(file);
    for (const auto& named : arguments.selection.cases) {
      std::error_code code;
      if (fs::is_regular_file(named, code)) now.Add(fs::path(named));
    }
    if (IsTerminal(STDOUT_FILENO)) Print("\x1b[H\x1b[2J\x1b[3J");
    const int exit_code = ExitCodeOf(RunOnce(arguments, &now));
    if (exit_code == kExitInterrupted || exit_code == kExitBug) return exit_code;
    watched = std::move(now);
    if (watched.files().empty()) return exit_code;
    PrintError(fmt::format("ulpscope: exit code {}; watching {}, Ctrl-C ends", exit_code,
                           Counted(watched.files().size(), "file")));
    while (watched.Changed().empty()) {
      if (g_watch_ends != 0) return exit_code;
      std::this_thread::sleep_for(kLook);
    }
    PrintError("ulpscope: " + watched.Changed() + " has changed");
    std::this_thread::sleep_for(kLook);  // whoever writes it writes the rest of it
  }
}

Result<int> Run(const RunArguments& asked) {
  RunArguments arguments = asked;
  BindOracleLibraries();
  if (arguments.exit_first) arguments.max_failures = 1;
  if (arguments.watch) return Watch(arguments);
  WatchedFiles watched;
  return RunOnce(arguments, &watched);
}

std::string CheckSeconds(const std::string& text) {
  constexpr double kMost = 1e6;
  const auto seconds = WholeNumber<double>(text);
  return seconds && *seconds > 0 && *seconds <= kMost
             ? ""
             : "'" + text + "' is no number of seconds above 0 and up to a million";
}

void AddLimitOptions(CLI::App* command, RunArguments* arguments) {
  CLI::Option* first = command->add_flag("-x,--exitfirst", arguments->exit_first,
                                         "begin nothing more after the first failure: --maxfail 1");
  command
      ->add_option(
          "--maxfail", arguments->max_failures,
          "begin nothing more after N failures, that is results for which the run would not exit with 0")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->excludes(first);
  command->add_option("--timeout", arguments->timeout, "seconds for one case")
      ->check(CLI::Validator(CheckSeconds, "SECONDS"));
  command
      ->add_option("--minutes", arguments->minutes,
                   "for all of it: what is judged by then is the answer; the report lists the rest, and the "
                   "exit code is 6")
      ->check(CLI::Validator(CheckMinutes, "MINUTES"));
}

}  // namespace

void AddRunCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("run", "run cases on backends and print the matrix");
  RunArguments* arguments = OptionsOf(command, exit_code, Run);
  Selection* selection = &arguments->selection;
  AddSelectionOptions(command, selection);
  arguments->said = [command](const char* option) { return command->count(option) > 0; };
  command->add_flag("--lf", selection->last_failed, "only cases that failed in runs/latest");
  command->add_option("--shard", selection->shard,
                      "i/n: one of n parts of the run, which `merge` puts together; auto: as Slurm, GitLab, "
                      "Kubernetes, GitHub, Bazel or GoogleTest say");
  CLI::Option* plan =
      command->add_option("--plan", arguments->plan,
                          "what a file of `ulpscope plan` says, and nothing else; refused where this "
                          "machine would run something else");
  for (const char* other : {"cases", "--backends", "-k", "-m", "--seed", "--knob", "--knob-sweep", "--repeat",
                            "--no-steps", "--no-trace", "--adapter", "--lf"})
    plan->excludes(command->get_option(other));
  command->add_option("-j,--jobs", arguments->jobs, "workers at a time; results do not depend on it")
      ->check(CLI::Range(1, 64));
  command->add_option("-o,--out", arguments->out, "run folder (default: runs/<UTC>-<id>)");
  command
      ->add_flag("--resume", arguments->resume,
                 "go on with the run in -o DIR; what is not said (cases, backends, seed ...) is as it was")
      ->needs("--out");
  AddLimitOptions(command, arguments);
  command
      ->add_option("--schedule", arguments->schedule,
                   "WAIT,WARMUP,ACTIVE: run each program so often for its durations, which are medians of "
                   "the active runs; the "
                   "backends of torch.compile are profiled, with the kernels under each op on CUDA")
      ->check(CLI::Validator(CheckSchedule, "W,U,A"));
  command
      ->add_option("--oracle", arguments->oracle,
                   "fast: the certified fast path, compared with Boost; boost: Boost alone")
      ->check(CLI::IsMember({"fast", "boost"}));
  CLI::Option* watch = command->add_flag(
      "--watch", arguments->watch,
      "run again whenever a case file, or a file that it takes tensors from, changes; Ctrl-C ends it");
  for (const char* other : {"--out", "--resume", "--plan", "--shard", "--lf"})
    watch->excludes(command->get_option(other));
  AddReportOptions(command, &arguments->outputs);
  command->add_flag(
      "--remedies", arguments->remedies,
      "where backends differ, try the settings that are known to make them compute the program as written");
  command->add_flag("-q,--quiet", arguments->quiet, "only failures and counts");
  command->add_flag("-v,--verbose", arguments->verbose, "also differences of order and of casts");
  command
      ->add_option("--durations", arguments->durations,
                   "also the N results that took longest between question and answer")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000));
}

}  // namespace ulpscope
