// Reads, compares and writes merged runs.
#include "harness/record/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "harness/base/find.h"
#include "harness/record/cases.h"
#include "harness/record/classified.h"
#include "harness/record/journal.h"
#include "harness/record/observation_json.h"
#include "harness/record/run_file.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;
using CellKey = std::pair<std::string, std::string>;  ///< case, backend
using Plan = std::vector<PlannedCase>;
using Chosen = std::pair<size_t, const RecordedResult*>;  ///< which run, which of its results

Plan PlanOf(const RunHeader& header) {
  if (!header.plan.empty()) return header.plan;
  Plan plan;
  for (const auto& id : header.cases) plan.push_back({.id = id, .digest = header.digests.at(id)});
  return plan;
}

/// A result with all its files next to the journal, and its volatile parts separately.
struct WholeResult {
  RecordedResult record;
  std::string volatile_text = {};  ///< orders results that are the same but for these
};

Result<WholeResult> ReadWhole(const RecordedRun& run, const RecordedResult& result) {
  WholeResult whole{.record = result};
  ULPSCOPE_TRY(LoadTensors(run, whole.record));
  ULPSCOPE_TRY(LoadTrace(run, whole.record));
  whole.volatile_text =
      ToJson(whole.record.observation).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
      TraceToJson(whole.record.observation.trace)
          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return whole;
}

/// A difference between two results apart from times; empty if there is none.
std::string Difference(const WholeResult& a, const WholeResult& b) {
  if (a.record.digest != b.record.digest) return "the case itself";
  const auto stable = [](Observation observation) {
    observation.durations_ms.clear();
    observation.worker_log.clear();
    observation.observations.erase("peak_bytes");  // an allocator's history, as durations are a clock's
    for (Cast& cast : observation.casts) cast.us.reset();
    for (TraceNode& node : observation.trace) node.us.reset();
    return observation;
  };
  const Observation one = stable(a.record.observation), other = stable(b.record.observation);
  if (one.outcome.kind != other.outcome.kind || one.outcome.error_class != other.outcome.error_class ||
      one.outcome.text != other.outcome.text)
    return fmt::format("the outcome: {} and {}", Name(one.outcome.kind), Name(other.outcome.kind));
  for (const auto& [name, tensor] : one.values) {
    const TensorData* found = Lookup(other.values, name);
    if (found == nullptr || *found != tensor) return "the bits of " + name;
  }
  if (one.values.size() != other.values.size()) return "which values there are";
  if (ToJson(one) != ToJson(other)) return "what was observed beside the values";
  if (TraceToJson(one.trace) != TraceToJson(other.trace)) return "the trace";
  return "";
}

class Merger {
 public:
  Result<Merged> Merge(const std::vector<fs::path>& folders, const fs::path& out) {
    for (const auto& folder : folders) {
      auto run = ULPSCOPE_TRY(ReadRun(folder, TensorLoading::kLater));
      runs_.push_back(std::move(run));
    }
    merged_.runs = runs_.size();
    // The order of the runs decides nothing but the choice among equals; sorting makes that independent of
    // the order of the arguments.
    std::ranges::stable_sort(runs_, [](const RecordedRun& a, const RecordedRun& b) {
      return std::tie(a.header.started, a.header.id) < std::tie(b.header.started, b.header.id);
    });
    CompareHeaders();
    if (merged_.conflicts.empty()) CheckPlanned();
    if (!merged_.conflicts.empty()) return std::move(merged_);
    ULPSCOPE_TRY(Choose());
    if (!merged_.conflicts.empty()) return std::move(merged_);
    FindGaps();
    ULPSCOPE_TRY(Write(out));
    return std::move(merged_);
  }

 private:
  void Conflict(const RecordedRun& run, const std::string& what) {
    merged_.conflicts.push_back(
        fmt::format("{} and {} differ in {}", runs_.front().dir.string(), run.dir.string(), what));
  }

  void CompareHeaders() {
    const RunHeader& first = runs_.front().header;
    const Plan plan = PlanOf(first);
    for (const RecordedRun& run : runs_) {
      const RunHeader& header = run.header;
      if (header.seed != first.seed)
        Conflict(run, fmt::format("the seed: {} and {}", first.seed, header.seed));
      if (header.version != first.version)
        Conflict(run, "the version of ulpscope: " + first.version + " and " + header.version);
      if (header.repeat != first.repeat) Conflict(run, "--repeat");
      if (header.trace != first.trace) Conflict(run, "--no-trace");
      if (header.knobs != first.knobs) Conflict(run, "--knob");
      if (header.backends != first.backends) Conflict(run, "the backends");
      if (header.swept != first.swept) Conflict(run, "the knobs that are swept");
      if (header.environment != first.environment) Conflict(run, "the environment");
      if (header.not_installed != first.not_installed) Conflict(run, "what is not installed");
      if (PlanOf(header) != plan) Conflict(run, "the plan: they are no shards of one run");
      TakeEach(run, "the versions of ", run.versions, &versions_);
      TakeEach(run, "the knobs of ", run.knobs, &knobs_);
    }
  }

  /// A run's facts about each backend, which must be the same in every run.
  template <class Map>
  void TakeEach(const RecordedRun& run, const std::string& what, const Map& said, Map* all) {
    for (const auto& [backend, one] : said) {
      const auto [known, added] = all->try_emplace(backend, one);
      if (!added && known->second != one) Conflict(run, what + backend);
    }
  }

  /// Chooses one result for each (case, backend).
  Result<void> Choose() {
    for (size_t i = 0; i < runs_.size(); ++i) {
      for (const RecordedResult& result : runs_[i].results) {
        const auto [known, added] = chosen_.try_emplace({result.case_id, result.backend}, i, &result);
        if (added) continue;
        const auto before = ULPSCOPE_TRY(ReadWhole(runs_[known->second.first], *known->second.second));
        const auto now = ULPSCOPE_TRY(ReadWhole(runs_[i], result));
        if (const std::string what = Difference(before, now); !what.empty()) {
          merged_.conflicts.push_back(fmt::format("{} on {}: {} and {} differ in {}", result.case_id,
                                                  result.backend, runs_[known->second.first].dir.string(),
                                                  runs_[i].dir.string(), what));
        } else if (now.volatile_text < before.volatile_text) {
          known->second = {i, &result};
        }
      }
    }
    return {};
  }

  struct PlannedCell {
    CellKey key;
    std::string digest;
  };

  /// In the order of the plan. Each is either written or missing.
  std::vector<PlannedCell> PlannedCells() const {
    std::vector<PlannedCell> cells;
    const RunHeader& first = runs_.front().header;
    for (const PlannedCase& planned : PlanOf(first)) {
      for (const auto& backend : first.backends) {
        if (planned.backends.empty() || Contains(planned.backends, backend))
          cells.push_back({.key = {planned.id, backend}, .digest = planned.digest});
      }
    }
    return cells;
  }

  const Chosen* FindPlanned(const PlannedCell& cell) const {
    const Chosen* found = Lookup(chosen_, cell.key);
    return found == nullptr || found->second->digest != cell.digest ? nullptr : found;
  }

  void FindGaps() {
    for (const PlannedCell& cell : PlannedCells()) {
      if (FindPlanned(cell) == nullptr) merged_.gaps.push_back(cell.key.first + " on " + cell.key.second);
    }
  }

  /// A result that is not in the plan is of another run, or its run's header contradicts its content.
  void CheckPlanned() {
    std::set<CellKey> planned;
    std::map<std::string, std::string> digests;
    for (const PlannedCell& cell : PlannedCells()) {
      planned.insert(cell.key);
      digests[cell.key.first] = cell.digest;
    }
    for (const RecordedRun& run : runs_) {
      const auto contradicts = [&](const std::string& what) {
        merged_.conflicts.push_back(run.dir.string() + " contradicts its own plan: " + what);
      };
      for (const auto& id : run.header.cases) {
        if (LookupOr(digests, id) != LookupOr(run.header.digests, id, "none"))
          contradicts("it ran " + id + ", of which the plan " +
                      (digests.contains(id) ? "says another digest" : "says nothing"));
      }
      for (const RecordedResult& result : run.results) {
        if (!planned.contains({result.case_id, result.backend}))
          contradicts("it holds a result of " + result.case_id + " on " + result.backend);
      }
    }
  }

  RunHeader Header() const {
    RunHeader header = runs_.front().header;
    const Plan plan = PlanOf(header);
    std::set<std::string> covered;
    for (const RecordedRun& run : runs_) covered.insert(run.header.cases.begin(), run.header.cases.end());
    for (const auto& [key, chosen] : chosen_) covered.insert(key.first);
    header.cases.clear();
    header.digests.clear();
    for (const PlannedCase& planned : plan) {
      if (!covered.contains(planned.id)) continue;
      header.cases.push_back(planned.id);
      header.digests[planned.id] = planned.digest;
    }
    header.plan = header.cases.size() == plan.size() && header.swept.empty() ? Plan() : plan;
    return header;
  }

  Result<void> Write(const fs::path& out) {
    const RunHeader header = Header();
    auto dir = ULPSCOPE_TRY(MakeRunFolder(out, header.id, header.started));
    merged_.lock = ULPSCOPE_TRY(RunLock::TakeNew(dir));
    auto journal = ULPSCOPE_TRY(JournalWriter::Create(merged_.lock, header));
    for (const auto& backend : header.backends) {
      if (!versions_.contains(backend) && !knobs_.contains(backend)) continue;
      ULPSCOPE_TRY(journal->Backend(backend, versions_[backend], knobs_[backend]));
    }
    for (const PlannedCell& cell : PlannedCells()) {
      const auto* found = FindPlanned(cell);
      if (found == nullptr) continue;
      const auto whole = ULPSCOPE_TRY(ReadWhole(runs_[found->first], *found->second));
      const RecordedResult& record = whole.record;
      ULPSCOPE_TRY(journal->Store(cell.key.first, record.digest, cell.key.second, record.observation));
      ++merged_.results;
    }
    const auto ending =
        merged_.gaps.empty() ? JournalWriter::Ending::kComplete : JournalWriter::Ending::kInterrupted;
    ULPSCOPE_TRY(journal->End(ending));
    return WriteBeside(dir, header);
  }

  /// Writes the cases and the classifications.
  Result<void> WriteBeside(const fs::path& dir, const RunHeader& header) {
    RecordedCases cases;
    ClassifiedRun classified;
    std::set<std::string> counted;
    for (const RecordedRun& run : runs_) {
      auto of_run = ULPSCOPE_TRY(ReadRecordedCases(run.dir, run.header.id));
      for (auto& [key, one] : of_run) {
        if (LookupOr(header.digests, key.first) != key.second || cases.contains(key)) continue;
        if (!one.inputs.empty()) {
          ULPSCOPE_TRY(CopyInputs(run.dir, dir, one.inputs));
        }
        cases[key] = std::move(one);
      }
      auto found = ULPSCOPE_TRY(ReadClassified(run));
      for (auto& [key, one] : found.results) {
        if (header.digests.contains(key.first)) classified.results.try_emplace(key, std::move(one));
      }
      if (classified.engine.empty() || found.engine < classified.engine) classified.engine = found.engine;
      if (counted.insert(run.header.id).second) classified.counts += found.counts;
    }
    ULPSCOPE_TRY(WriteRecordedCases(dir, header.id, cases));
    RecordedRun target{.dir = dir, .header = header, .complete = false, .stopped_after = 0};
    return WriteClassified(target, classified);
  }

  std::vector<RecordedRun> runs_;
  std::map<std::string, std::map<std::string, std::string>> versions_;
  std::map<std::string, std::map<std::string, std::vector<std::string>>> knobs_;
  std::map<CellKey, Chosen> chosen_;
  Merged merged_;
};

}  // namespace

Result<Merged> MergeRuns(const std::vector<fs::path>& runs, const fs::path& out) {
  return Merger().Merge(runs, out);
}

}  // namespace ulpscope
