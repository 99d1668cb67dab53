// Running programs with given values.
#include "harness/hybrid/hybrid_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/open.h"
#include "harness/casefile/program_edits.h"
#include "harness/hybrid/carriers.h"
#include "harness/hybrid/strands.h"
#include "harness/ledger/hybrid.h"
#include "harness/record/observation_json.h"
#include "harness/run/backend.h"
#include "harness/run/protocol.h"
#include "harness/words/remedies.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "ledger";

/// One backend's run of a case, and the run in which every step was observed, or only the values that it stores anyway.
struct BackendRun {
  std::string backend;
  Observation own, steps;
  bool stored_alone = false;
};

/// Remedies run next to the hybrids. One thread starts all of its adapters and outlives them, because a process ends
/// with the thread that started it (harness/run/child_process.h).
struct RemedyRuns {
  RemedyRuns(const Registry& registry, RunOptions options, int interrupt_fd)
      : thread(1, 0), carriers(registry, std::move(options), interrupt_fd) {}

  Strands thread;
  Carriers carriers;  ///< used by jobs of `thread` alone
};

struct WaitFor {
  Strands* strands;
  ~WaitFor() { strands->Wait(); }
};

bool Completed(const RecordedResult* result) {
  return result != nullptr && result->observation.outcome.kind == OutcomeKind::kCompleted;
}

/// The hybrids of one case.
class HybridsOfCase {
 public:
  HybridsOfCase(const RecordedRun& run, const ResultIndex& results, const Registry& registry,
                Carriers* carriers, RemedyRuns* beside, const Case& test_case, const Case& opened)
      : run_(run),
        results_(results),
        registry_(registry),
        carriers_(*carriers),
        beside_(*beside),
        case_(test_case),
        opened_(opened) {}

  void TryRemedies() { try_remedies_ = true; }

  /// False if the run was interrupted.
  Result<bool> Make(JournalWriter* writer) {
    order_ = ComputedValues(opened_);
    inputs_ = ULPSCOPE_TRY(MakeInputs(case_, run_.header.seed));
    ULPSCOPE_TRY(ChooseCarrier());
    // Each remedy compiles the program again, so later work does not wait for it.
    std::optional<Result<std::vector<NamedTensors>>> remedies;
    beside_.thread.Post("", 0, [&] { remedies = RunRemedies(); });
    const WaitFor all_jobs{&beside_.thread};  // they use this function's variables, however it ends
    for (BackendRun& run : runs_) {
      if (!Keeps(run.own, run.steps)) ULPSCOPE_TRY(ObserveStored(&run));
    }
    std::vector<std::pair<NamedTensors, Observation>> done;
    std::vector<Observation> walks;
    for (const BackendRun& run : runs_) {
      const auto same =
          std::ranges::find_if(done, [&](const auto& known) { return known.first == run.steps.values; });
      Observation observation;
      if (same != done.end()) {
        observation = same->second;
      } else {
        auto made = ULPSCOPE_TRY(HybridsOf(run));
        if (!made) return false;
        observation = *std::move(made);
        done.emplace_back(run.steps.values, observation);
      }
      walks.push_back(std::move(observation));
    }
    beside_.thread.Wait();
    const std::vector<NamedTensors> tried = ULPSCOPE_TRY(*std::move(remedies));
    for (size_t i = 0; i < runs_.size(); ++i) {
      walks[i].values.insert(tried[i].begin(), tried[i].end());
      ULPSCOPE_TRY(writer->Store(case_.id, CaseDigest(case_), runs_[i].backend, walks[i]));
    }
    if (outside_) {
      ULPSCOPE_TRY(writer->Store(opened_.id, CaseDigest(opened_), carrier_, *outside_));
    }
    return true;
  }

  /// Whether there is anything to book; if so, reads the runs, and those of the steps.
  Result<bool> Differs() {
    for (const std::string& backend : run_.header.backends) {
      const RecordedResult* own = results_.Find(case_.id, backend);
      if (!Completed(own) || !Completed(results_.Find(opened_.id, backend))) continue;
      runs_.push_back({.backend = backend, .own = ULPSCOPE_TRY(ObservationOf(*own)), .steps = {}});
    }
    for (const BackendRun& run : runs_) {
      for (const auto& [name, tensor] : run.own.values) {
        if (!Contains(opened_.observe, name)) continue;
        const TensorData* first = Lookup(runs_.front().own.values, name);
        if (first != nullptr && !(*first == tensor)) observed_.insert(name);
      }
    }
    if (observed_.empty()) return false;
    for (BackendRun& run : runs_)
      run.steps = ULPSCOPE_TRY(ObservationOf(*results_.Find(opened_.id, run.backend)));
    return true;
  }

 private:
  /// With its tensors.
  Result<Observation> ObservationOf(RecordedResult recorded) const {
    ULPSCOPE_TRY(LoadTensors(run_, recorded));
    return std::move(recorded.observation);
  }

  /// True if the values in which backends differ have the same bits in both of these.
  bool Keeps(const Observation& own, const Observation& other) const {
    return std::ranges::all_of(observed_, [&](const std::string& name) {
      const TensorData *asked = Lookup(own.values, name), *again = Lookup(other.values, name);
      return asked != nullptr && again != nullptr && *asked == *again;
    });
  }

  /// The values of steps that the program of `run` writes to memory anyway, with the dtypes and sizes of the steps;
  /// empty if its adapter does not report them.
  Result<std::set<std::string>> StoredBy(const BackendRun& run) {
    std::set<std::string> names;
    const RegistryRow* row = registry_.Find(BackendSpec::NameOf(run.backend));
    if (row == nullptr || row->of_caller) return names;  // only its caller can start it
    GivenProgram asked{.program = case_, .inputs = inputs_};
    asked.program.observe.emplace_back(kStoredWord);
    const auto answer = ULPSCOPE_TRY(carriers_.Run(run.backend, asked));
    if (!answer || answer->outcome.kind != OutcomeKind::kCompleted) return names;
    for (const std::string& each :
         SplitOutsideParentheses(LookupOr(answer->observations, std::string(kStoredWord)), ',')) {
      const auto words = SplitOutsideParentheses(each, ' ');
      const TensorData* step = words.size() == 3 ? Lookup(run.steps.values, words[0]) : nullptr;
      if (step != nullptr && Name(step->dtype) == words[1] && std::to_string(step->size()) == words[2])
        names.insert(words[0]);
    }
    return names;
  }

  /// Observes the requested program at the values that it stores anyway, or at as many of them as change no result.
  Result<void> ObserveStored(BackendRun* run) {
    constexpr int kMostRuns = 6;  // each compiles the program anew
    const std::set<std::string> named = ULPSCOPE_TRY(StoredBy(*run));
    if (named.empty()) return {};
    // Libraries read their operands from memory too, though perhaps in another layout than the step's: those are left out first.
    std::set<std::string> stored = ReadByLibraries(opened_);
    stored.insert(named.begin(), named.end());
    for (int runs = 0; !stored.empty() && runs < kMostRuns; ++runs) {
      GivenProgram program{.program = case_, .inputs = inputs_};
      program.program.id = opened_.id;
      for (const std::string& name : stored) {
        if (!Contains(program.program.observe, name)) program.program.observe.push_back(name);
      }
      auto seen = ULPSCOPE_TRY(carriers_.Run(run->backend, program));
      if (!seen || seen->outcome.kind != OutcomeKind::kCompleted) return {};
      if (Keeps(run->own, *seen)) {
        run->steps = *std::move(seen);
        run->stored_alone = true;
        return {};
      }
      if (stored.size() > named.size()) {
        stored = named;
        continue;
      }
      // The first half in program order: later steps read the early values.
      std::vector<std::string> ordered;
      for (const std::string& name : order_) {
        if (stored.contains(name)) ordered.push_back(name);
      }
      ordered.resize(ordered.size() / 2);
      stored = std::set<std::string>(ordered.begin(), ordered.end());
    }
    return {};
  }

  /// Takes the first backend of the run that computes op by op and gives the same values whether its steps are observed or not.
  Result<void> ChooseCarrier() {
    for (const RegistryRow& row : registry_.rows()) {
      for (const BackendRun& run : runs_) {
        if (BackendSpec::NameOf(run.backend) != row.backend || !row.op_by_op) continue;
        if (!Keeps(run.own, run.steps)) continue;
        carrier_ = run.backend;
        for (const std::string& name : observed_) start_.emplace(name, run.own.values.at(name));
        return {};
      }
    }
    // None of the run: one that is here and can compute all of it.
    auto found = ULPSCOPE_TRY(FindCarrier(&carriers_, registry_, {.program = opened_, .inputs = inputs_}));
    if (!found) return {};
    carrier_ = found->backend;
    for (const std::string& name : observed_) {
      if (const TensorData* tensor = Lookup(found->run.values, name)) start_.emplace(name, *tensor);
    }
    outside_ = std::move(found->run);
    return {};
  }

  /// Nothing if the run was interrupted.
  Result<std::optional<Observation>> HybridsOf(const BackendRun& run) {
    Observation made;
    if (carrier_.empty()) {
      made.observations["left_out"] = kNoCarrier;
      return std::optional(made);
    }
    NamedTensors values;
    for (const std::string& name : order_) {
      if (const TensorData* tensor = Lookup(run.steps.values, name)) values.emplace(name, *tensor);
    }
    const GivenValues given{.opened = opened_, .inputs = inputs_, .observed = observed_, .values = values};
    auto walked = ULPSCOPE_TRY(WalkHybrids(&carriers_, carrier_, given, start_));
    if (!walked) return std::optional<Observation>();
    made = *std::move(walked);
    if (run.stored_alone && made.observations.contains("carrier")) {
      for (const auto& [name, tensor] : values) made.values["stored/" + name] = tensor;
    }
    return std::optional(made);
  }

  /// Runs the requested program on each backend of `runs_`, with each setting that may bring it to the carrier's result.
  Result<std::vector<NamedTensors>> RunRemedies() {
    std::vector<NamedTensors> tried(runs_.size());
    std::vector<std::string> ops;
    for (const Step* step : FlatSteps(case_.program)) ops.push_back(step->op);
    for (size_t i = 0; i < runs_.size() && try_remedies_; ++i) {
      const bool differs = std::ranges::any_of(observed_, [&](const std::string& name) {
        const TensorData *own = Lookup(runs_[i].own.values, name), *start = Lookup(start_, name);
        return own != nullptr && start != nullptr && !(*own == *start);
      });
      if (!differs) continue;
      const auto spec = ULPSCOPE_TRY(ParseBackend(runs_[i].backend, registry_));
      for (const RemedyRow& row : RemediesFor(spec.name, spec.device, ops)) {
        BackendSpec with = spec;
        with.knobs[std::string(row.knob)] = row.value;
        if (with == spec || case_.knobs.contains(std::string(row.knob))) continue;
        const auto run =
            ULPSCOPE_TRY(beside_.carriers.Run(with.Text(), {.program = case_, .inputs = inputs_}));
        if (!run || run->outcome.kind != OutcomeKind::kCompleted) continue;
        bool leaves_any = false;
        for (const std::string& name : observed_) {
          const TensorData* tensor = Lookup(run->values, name);
          if (tensor == nullptr) continue;
          leaves_any = leaves_any || Lookup(start_, name) == nullptr || !(*tensor == start_.at(name));
          tried[i][fmt::format("remedy/{}={}/{}", row.knob, row.value, name)] = *tensor;
        }
        if (!leaves_any) break;  // nothing is left for another one
      }
    }
    return tried;
  }

  const RecordedRun& run_;
  const ResultIndex& results_;
  const Registry& registry_;
  Carriers& carriers_;
  RemedyRuns& beside_;
  const Case& case_;
  const Case& opened_;
  std::vector<BackendRun> runs_;
  std::set<std::string> observed_;  ///< values that differ
  std::vector<std::string> order_;
  NamedTensors inputs_;
  std::string carrier_;
  bool try_remedies_ = false;
  NamedTensors start_;
  std::optional<Observation> outside_;  ///< of a carrier that is no backend of the run
};

/// The journal of hybrids in the folder of `run`, which has none yet. A carrier may be one of `registry` that is no backend of the run.
Result<std::unique_ptr<JournalWriter>> OpenHybrids(const RecordedRun& run, const Registry& registry) {
  RunHeader header = run.header;
  header.plan.clear();
  for (const RegistryRow& row : registry.rows()) {
    if (row.op_by_op && !Contains(header.backends, row.backend)) header.backends.push_back(row.backend);
  }
  ULPSCOPE_TRY(MakeFoldersOf({.folder = run.dir, .name = std::string(kFolder) + "/journal.jsonl"}));
  return JournalWriter::Create(run.dir / kFolder, header);
}

}  // namespace

Result<void> RunHybrids(const RecordedRun& run, const Workspace& workspace, RunOptions options,
                        Remedies remedies, int interrupt_fd) {
  const RunFile folder{.folder = run.dir, .name = kFolder};
  if (ULPSCOPE_TRY(IsFolderThere(folder))) {
    std::error_code error;
    fs::remove_all(folder.path(), error);
    if (error) return Fail(folder.path().string() + ": " + error.message());
  }
  options.repeat = 1;
  options.trace = false;
  options.resume = false;
  Carriers carriers(workspace.registry, options, interrupt_fd);
  RemedyRuns beside(workspace.registry, std::move(options), interrupt_fd);
  std::unique_ptr<JournalWriter> writer;
  const CaseIndex cases(workspace);
  const ResultIndex results(run);
  for (const std::string& id : run.header.cases) {
    const Case* test_case = cases.Find(id);
    if (test_case == nullptr) continue;
    const auto opened = Opened(*test_case);
    if (!opened) continue;
    HybridsOfCase hybrids(run, results, workspace.registry, &carriers, &beside, *test_case, *opened);
    if (!ULPSCOPE_TRY(hybrids.Differs())) continue;
    if (writer == nullptr) {
      writer = ULPSCOPE_TRY(OpenHybrids(run, workspace.registry));
      // Both fork a janitor, before there is a second thread.
      ULPSCOPE_TRY(carriers.Prepare());
      ULPSCOPE_TRY(beside.carriers.Prepare());
    }
    if (remedies == Remedies::kTry) hybrids.TryRemedies();
    if (!ULPSCOPE_TRY(hybrids.Make(writer.get()))) return writer->End(JournalWriter::Ending::kInterrupted);
  }
  if (writer == nullptr) return {};
  return writer->End(JournalWriter::Ending::kComplete);
}

Result<std::optional<RecordedRun>> ReadHybrids(const RecordedRun& run) {
  const RunFile folder{.folder = run.dir, .name = kFolder};
  if (run.dir.empty() || !ULPSCOPE_TRY(IsFolderThere(folder))) return std::optional<RecordedRun>();
  auto read = ULPSCOPE_TRY(ReadRun(folder.path(), TensorLoading::kLater));
  return std::optional(std::move(read));
}

Result<void> MergeHybrids(const std::vector<std::string>& parts, const RecordedRun& merged,
                          const Registry& registry) {
  std::unique_ptr<JournalWriter> writer;
  for (const std::string& part : parts) {
    const auto run = ULPSCOPE_TRY(ReadRun(part, TensorLoading::kLater));
    const auto hybrids = ULPSCOPE_TRY(ReadHybrids(run));
    if (!hybrids) continue;
    if (writer == nullptr) {
      writer = ULPSCOPE_TRY(OpenHybrids(merged, registry));
    }
    for (RecordedResult result : hybrids->results) {
      ULPSCOPE_TRY(LoadTensors(*hybrids, result));
      ULPSCOPE_TRY(writer->Store(result.case_id, result.digest, result.backend, result.observation));
    }
  }
  if (writer == nullptr) return {};
  return writer->End(JournalWriter::Ending::kComplete);
}

}  // namespace ulpscope
