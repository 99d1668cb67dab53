// The threads of a run, and the events that they send to the one that judges.
#include "harness/run/scheduler.h"

#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <mutex>
#include <thread>

#include "harness/base/build_info.h"
#include "harness/base/check.h"
#include "harness/base/machine_limits.h"
#include "harness/record/journal.h"
#include "harness/record/observation_json.h"
#include "harness/run/environment.h"
#include "harness/run/interrupt.h"
#include "harness/run/preset.h"
#include "harness/run/run_plan.h"
#include "harness/run/scratch.h"

namespace ulpscope {
namespace {

constexpr size_t kMaxWaiting = 8;    // results that wait for the judge; more would only fill memory
constexpr size_t kWorthASecond = 4;  // tasks left in a group that make another worker's start-up pay

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string NewId() {
  uint32_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    number = static_cast<uint32_t>(std::clock());
  char text[16];
  std::snprintf(text, sizeof text, "%08x", number);
  return text;
}

/// An event that a worker thread passes to the observer.
struct Event {
  const Task* task = nullptr;
  std::optional<Observation> observation;                        ///< none: the case begins, or
  std::optional<std::map<std::string, std::string>> versions{};  ///< as its adapter reports them
};

/// Bounded, so that a slow judge holds the workers back instead of filling memory.
class EventQueue {
 public:
  void Push(Event event) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [this] { return events_.size() < kMaxWaiting; });
    events_.push_back(std::move(event));
    ++unhandled_;
    not_empty_.notify_one();
  }
  /// Marks the last event that Pop returned as handled.
  void Handled() {
    const std::lock_guard lock(mutex_);
    --unhandled_;
    if (unhandled_ == 0) all_handled_.notify_all();
  }
  void WaitUntilHandled() {
    std::unique_lock lock(mutex_);
    all_handled_.wait(lock, [this] { return unhandled_ == 0; });
  }
  /// Nothing once every producer has finished and the queue is empty.
  std::optional<Event> Pop() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [this] { return !events_.empty() || producers_ == 0; });
    if (events_.empty()) return std::nullopt;
    Event event = std::move(events_.front());
    events_.pop_front();
    not_full_.notify_one();
    return event;
  }
  void SetProducers(int count) { producers_ = count; }
  void ProducerDone() {
    const std::lock_guard lock(mutex_);
    --producers_;
    not_empty_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable not_empty_, not_full_, all_handled_;
  std::deque<Event> events_;
  size_t unhandled_ = 0;  ///< events that wait, and the one that is being dealt with
  int producers_ = 0;
};

/// State that all threads of a run share.
class Run {
 public:
  Run(RunPlan& plan, JournalWriter& journal, const Registry& registry, const Scratch& scratch,
      const InputProvider& inputs, const RunOptions& options, Interrupt& interrupt)
      : plan_(plan),
        journal_(journal),
        registry_(registry),
        scratch_(scratch),
        inputs_(inputs),
        options_(options),
        interrupt_(interrupt) {}

  EventQueue& events() { return events_; }
  const std::optional<Error>& error() const { return error_; }

  /// The body of a worker thread.
  void Work() {
    while (TaskGroup* group = Claim()) {
      CaseRunner runner(group->key, registry_, scratch_, options_, interrupt_.fd());
      while (!Ends()) {
        const size_t index = group->next.fetch_add(1);
        if (index >= group->tasks.size() || !RunTask(*group, *group->tasks[index], runner)) break;
      }
    }
    events_.ProducerDone();
  }

  bool IsInterrupted() const { return interrupt_.IsRaised(); }

  /// Starts nothing more; running cases end normally.
  void Stop() { stopped_ = true; }

  /// False when the run cannot go on; the first reason is kept.
  template <class T>
  bool Note(const Result<T>& result) {
    if (result) return true;
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = result.error();
    interrupt_.Raise();
    return false;
  }

 private:
  bool Ends() const { return stopped_ || IsInterrupted(); }

  /// A group without a worker, in order; else the one with the most tasks left, if a second worker pays.
  TaskGroup* Claim() {
    const std::lock_guard lock(claim_mutex_);
    if (Ends()) return nullptr;
    TaskGroup* chosen = nullptr;
    for (const auto& group : plan_.groups) {
      if (group->Left() == 0) continue;
      if (group->served_by == 0) {
        chosen = group.get();
        break;
      }
      const size_t most =
          chosen == nullptr ? kWorthASecond * static_cast<size_t>(group->served_by) : chosen->Left();
      if (group->Left() > most) chosen = group.get();
    }
    if (chosen != nullptr) ++chosen->served_by;
    return chosen;
  }

  bool RunTask(TaskGroup& group, const Task& task, CaseRunner& runner) {
    const std::string backend = task.backend->Text();
    if (!Note(journal_.Begin(task.test_case->id, backend))) return false;
    events_.Push({.task = &task, .observation = std::nullopt});
    std::optional<Observation> observation;
    if (group.key.refusal.empty()) {
      auto inputs = Inputs(*task.test_case);
      if (!Note(inputs)) return false;
      observation = runner.Run(*task.test_case, *inputs);
    } else {
      observation = runner.Run(*task.test_case, {});
    }
    if (!observation) return false;
    if (!NoteVersions(group, task)) return false;
    if (!Note(journal_.Store(task.test_case->id, CaseDigest(*task.test_case), backend, *observation)))
      return false;
    events_.Push({.task = &task, .observation = std::move(observation)});
    if (options_.in_step) events_.WaitUntilHandled();
    return true;
  }

  Result<std::map<std::string, TensorData>> Inputs(const Case& test_case) {
    const std::lock_guard lock(inputs_mutex_);
    return inputs_(test_case);
  }

  bool NoteVersions(TaskGroup& group, const Task& task) {
    BackendInfo info;
    {
      const std::lock_guard lock(group.key.mutex);
      if (!group.key.info || group.versions_known.exchange(true)) return true;
      info = *group.key.info;
    }
    events_.Push({.task = &task, .observation = std::nullopt, .versions = info.versions});
    return Note(journal_.Backend(task.backend->Text(), info.versions, info.knobs));
  }

  RunPlan& plan_;
  JournalWriter& journal_;
  const Registry& registry_;
  const Scratch& scratch_;
  const InputProvider& inputs_;
  const RunOptions& options_;
  Interrupt& interrupt_;
  EventQueue events_;
  std::atomic<bool> stopped_ = false;
  std::mutex claim_mutex_, inputs_mutex_, error_mutex_;
  std::optional<Error> error_;
};

/// Gives the observer the journal's results, then the new ones.
void Observe(Run& run, const RunPlan& plan, const RecordedRun* recorded, RunObserver& observer,
             RunSummary& summary) {
  for (const auto& task : plan.tasks) {
    if (task.done == nullptr) continue;
    RecordedResult result = *task.done;
    if (!run.Note(LoadTensors(*recorded, result))) break;
    observer.OnRecorded(*task.test_case, *task.backend, result.observation);
    ++summary.resumed;
  }
  while (auto event = run.events().Pop()) {
    const Task& task = *event->task;
    if (event->versions) {
      observer.OnVersions(*task.backend, *event->versions);
    } else if (!event->observation) {
      observer.OnBegin(*task.test_case, *task.backend);
    } else if (++summary.ran; !run.IsInterrupted()) {  // an interrupted run does not wait for the judge
      observer.OnResult(*task.test_case, *task.backend, *event->observation);
      if (const int64_t failures = observer.StopAfter(); failures > 0) {
        summary.stopped_after = failures;
        run.Stop();
      }
    }
    run.events().Handled();
  }
}

RunHeader MakeHeader(const std::vector<Case>& cases, const std::vector<BackendSpec>& backends,
                     const RunOptions& options, const RunSummary& summary) {
  RunHeader header{.id = summary.id,
                   .started = summary.started,
                   .version = std::string(Version()),
                   .seed = options.seed,
                   .repeat = options.repeat,
                   .trace = options.trace,
                   .knobs = options.knobs,
                   .swept = options.swept,
                   .not_installed = options.not_installed,
                   .environment = summary.environment,
                   .plan = options.plan};
  for (const auto& backend : backends) header.backends.push_back(backend.Text());
  for (const auto& test_case : cases) {
    header.cases.push_back(test_case.id);
    header.digests[test_case.id] = CaseDigest(test_case);
  }
  return header;
}

/// Checks the settings that recorded results must share with new ones.
Result<void> CheckResumable(const RunHeader& before, const RunHeader& now) {
  const auto differs = [](const std::string& what, std::string then, std::string today) {
    return Fail(Problem("the run cannot be resumed with another " + what, std::move(today), std::move(then),
                        "start a new run"));
  };
  if (before.seed != now.seed) return differs("seed", std::to_string(before.seed), std::to_string(now.seed));
  if (before.repeat != now.repeat)
    return differs("--repeat", std::to_string(before.repeat), std::to_string(now.repeat));
  if (before.version != now.version) return differs("version of ulpscope", before.version, now.version);
  if (before.trace != now.trace)
    return differs("choice of --no-trace", before.trace ? "on" : "off", now.trace ? "on" : "off");
  if (before.plan != now.plan)
    return differs("--shard or selection", before.plan.empty() ? "no shard" : "the plan of the first run",
                   now.plan.empty() ? "no shard" : "another plan");
  if (before.knobs != now.knobs) return differs("set of knobs", "the knobs of the first run", "others");
  return {};
}

/// The run that the folder holds already; the caller holds its lock.
Result<std::optional<RecordedRun>> ReadBefore(const RunLock& lock, const RunOptions& options,
                                              const RunHeader& header) {
  std::optional<RecordedRun> none;
  if (!HoldsRun(lock.folder())) return none;
  if (!options.resume)
    return Fail(Problem(lock.folder().string() + " holds a run already", {}, {},
                        "--resume continues it; or name another folder"));
  auto recorded = ULPSCOPE_TRY(ReadRun(lock.folder(), TensorLoading::kLater));
  ULPSCOPE_TRY(CheckResumable(recorded.header, header));
  // A result whose files beside the journal are damaged is run again; the others stay.
  std::erase_if(recorded.results, [&](const RecordedResult& result) {
    RecordedResult whole = result;
    return !LoadTensors(recorded, whole) || !LoadTrace(recorded, whole);
  });
  return std::optional(std::move(recorded));
}

/// Threads of worker drivers; joined before anything that they use goes.
void RunThreads(Run& run, int jobs, const std::function<void()>& meanwhile) {
  std::vector<std::thread> threads;
  run.events().SetProducers(jobs);
  for (int i = 0; i < jobs; ++i) {
    auto thread = TryThread([&run] { run.Work(); });
    if (thread)
      threads.push_back(std::move(*thread));
    else
      run.events().ProducerDone();
  }
  if (threads.empty()) run.Note(Result<void>(Fail("cannot start a thread: ulimit -u or -v allows none")));
  meanwhile();
  for (auto& thread : threads) thread.join();
}

}  // namespace

Result<RunSummary> RunCases(const std::vector<Case>& cases, const std::vector<BackendSpec>& backends,
                            const Registry& registry, const InputProvider& inputs, const RunOptions& options,
                            RunObserver& observer, RunHold* hold) {
  RunSummary summary{.id = NewId(), .started = UtcNow(), .environment = PresetEnvironment(registry)};
  RunHold own;
  RunHold& held = hold == nullptr ? own : *hold;
  held.interrupt = std::make_unique<Interrupt>();
  Interrupt& interrupt = *held.interrupt;
  // The janitor is forked before any thread exists.
  auto scratch = ULPSCOPE_TRY(Scratch::Create());
  summary.dir = ULPSCOPE_TRY(MakeRunFolder(options.out, summary.id, summary.started));
  const RunHeader header = MakeHeader(cases, backends, options, summary);
  held.lock = ULPSCOPE_TRY(RunLock::TakeNew(summary.dir));
  const auto before = ULPSCOPE_TRY(ReadBefore(*held.lock, options, header));
  const RecordedRun* recorded = before ? &*before : nullptr;
  if (recorded != nullptr) {
    summary.versions = recorded->versions;
    summary.id = recorded->header.id;
    summary.started = recorded->header.started;
  }
  ULPSCOPE_TRY(observer.OnFolder(summary));
  auto journal = ULPSCOPE_TRY(recorded == nullptr ? JournalWriter::Create(held.lock, header)
                                                  : JournalWriter::Continue(held.lock, *recorded, header));
  RunPlan plan = MakePlan(cases, backends, registry, options, recorded);
  summary.total = static_cast<int64_t>(plan.tasks.size());
  Run run(plan, *journal, registry, *scratch, inputs, options, interrupt);
  observer.OnStart(summary.total, summary);
  RunThreads(run, std::clamp(options.jobs, 1, 64), [&] { Observe(run, plan, recorded, observer, summary); });
  if (run.error()) return Fail(*run.error());
  for (const auto& group : plan.groups) {
    if (group->key.info) {
      for (const auto& [package, version] : group->key.info->versions) {
        summary.versions[group->key.backend.Text()][package] = version;
      }
    }
  }
  summary.interrupted = interrupt.IsRaised();
  using enum JournalWriter::Ending;
  const bool complete = !summary.interrupted && summary.ran + summary.resumed == summary.total;
  // Enough failures with the last result stopped nothing.
  if (complete) summary.stopped_after = 0;
  ULPSCOPE_CHECK(complete || summary.interrupted || summary.stopped_after > 0,
                 "a task was neither run nor taken from the journal");
  ULPSCOPE_TRY(journal->End(complete ? kComplete : kInterrupted, summary.stopped_after));
  observer.OnEnd(summary);
  return summary;
}

}  // namespace ulpscope
