// Finding or making runs.
#include "harness/workspace/recorded_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "harness/base/text.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/prove.h"
#include "harness/judge/judge.h"
#include "harness/record/observation_json.h"
#include "harness/run/backend.h"
#include "harness/run/scheduler.h"
#include "harness/workspace/recorded_cases.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

bool Holds(const RecordedRun& run, const ResultName& target) {
  return std::ranges::any_of(run.results, [&](const RecordedResult& result) {
    return result.case_id == target.id && (target.backend.empty() || result.backend == target.backend);
  });
}

bool IsAsRun(const RecordedRun& run, const Case& test_case) {
  const auto digest = run.header.digests.find(test_case.id);
  return digest != run.header.digests.end() && digest->second == CaseDigest(test_case);
}

/// The run to read: the requested one, else the latest one; a missing one is an error only if it was
/// requested.
Result<std::optional<RecordedRun>> OpenRecorded(const std::string& asked) {
  const fs::path dir = asked.empty() ? fs::path("runs/latest") : fs::path(asked);
  if (asked.empty() && !HoldsRun(dir)) return std::nullopt;
  auto run = ReadRun(dir, TensorLoading::kLater);
  if (!run) {
    if (asked.empty()) return std::nullopt;
    return Fail(run.error());
  }
  return std::optional<RecordedRun>(std::move(*run));
}

/// Whether a case has changed since the run. The latest run is compared with the current version of the case, if its
/// file can be read; a named run is not.
bool ChangedSince(const RecordedRun& run, const Workspace& workspace, const std::string& id) {
  Workspace today = workspace;
  today.cases.clear();
  if (!LoadInto(&today, {id}).empty()) return false;
  const Case* found = today.Find(id);
  return found != nullptr && !IsAsRun(run, *found);
}

class Quiet : public RunObserver {
 public:
  void OnResult(const Case&, const BackendSpec&, const Observation&) override {}
};

Result<RecordedRun> RunNow(const Workspace& workspace, const ResultName& target, int64_t seed,
                           const fs::path& dir) {
  std::vector<BackendSpec> backends = DefaultBackends(workspace.registry);
  if (!target.backend.empty()) {
    auto named = ULPSCOPE_TRY(ParseBackend(target.backend, workspace.registry));
    backends = {named};
  }
  RunOptions options;
  options.seed = seed;
  options.out = dir;
  Quiet observer;
  const InputProvider inputs = [&](const Case& test_case) { return MakeInputs(test_case, seed); };
  const auto summary = ULPSCOPE_TRY(RunCases(WithCompanions({*workspace.Find(target.id)}, Steps::kOpened),
                                             backends, workspace.registry, inputs, options, observer));
  return ReadRun(summary.dir, TensorLoading::kLater);
}

}  // namespace

ResultName ParseResultName(const std::string& what) {
  const size_t at = what.find('@');
  return at == std::string::npos ? ResultName{.id = what}
                                 : ResultName{.id = what.substr(0, at), .backend = what.substr(at + 1)};
}

Result<TemporaryFolder> TemporaryFolder::Make() {
  std::string name = (fs::temp_directory_path() / "ulpscope-run-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    return Fail("cannot make a temporary folder in " + fs::temp_directory_path().string());
  return TemporaryFolder(name);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code code;
  if (!path_.empty()) fs::remove_all(path_, code);
}

std::vector<std::string> ResultsAtHand(const std::string& dir, const std::string& command) {
  constexpr size_t kShown = 5;
  const auto run = OpenRecorded(dir);
  std::vector<std::string> lines;
  if (run && *run) {
    for (const RecordedResult& result : (*run)->results) {
      if (!BaseOf(result.case_id).empty()) continue;  // auxiliary cases of the harness
      lines.push_back("  " + command + " " + ShellQuote(result.case_id + "@" + result.backend));
    }
  }
  if (lines.empty())
    return {dir.empty()
                ? "there is no run here yet: `ulpscope run` makes one, `ulpscope list cases` has the ids"
                : dir + " holds no result"};
  const std::string head = fmt::format("{} holds {}:", dir.empty() ? "the newest run, runs/latest," : dir,
                                       Counted(static_cast<int64_t>(lines.size()), "result"));
  if (lines.size() > kShown) {
    lines.resize(kShown);
    lines.emplace_back("  ...");
  }
  lines.insert(lines.begin(), head);
  return lines;
}

Result<Workspace> OpenForCase(const std::string& dir, const std::string& id,
                              const std::vector<std::string>& adapters) {
  if (!adapters.empty()) {
    auto before = ULPSCOPE_TRY(OpenBeforeAdapters());
    const auto recorded = ULPSCOPE_TRY(OpenRecorded(dir));
    ULPSCOPE_TRY(FindOneCase(id, recorded ? &*recorded : nullptr, &before));
  }
  return OpenWorkspace(adapters);
}

Result<FoundRun> FindRun(const std::string& dir, std::optional<int64_t> seed, ResultName* name,
                         Workspace* workspace) {
  auto recorded = ULPSCOPE_TRY(OpenRecorded(dir));
  const auto test_case = ULPSCOPE_TRY(FindOneCase(name->id, recorded ? &*recorded : nullptr, workspace));
  const std::string asked = name->id;
  name->id = test_case.id;
  if (!name->backend.empty()) {
    const auto spec = ParseBackend(name->backend, workspace->registry);
    if (spec) name->backend = spec->Text();
    // A run from elsewhere may hold backends that are not known here.
    if (!spec && !(recorded && Holds(*recorded, *name))) return Fail(spec.error());
  }
  bool fits = recorded && Holds(*recorded, *name) && IsAsRun(*recorded, test_case);
  if (fits && dir.empty()) {
    fits = (!seed || *seed == recorded->header.seed) && !ChangedSince(*recorded, *workspace, name->id);
  }
  if (fits) return FoundRun{.run = std::move(*recorded), .folder = std::nullopt};
  if (!dir.empty())
    return Fail(Problem(fmt::format("{} holds no result for {}", dir, asked), name->backend, {}));
  // The current version of the case, if a file has it.
  Workspace today = *workspace;
  today.cases.clear();
  if (FindOneCase(asked, nullptr, &today)) *workspace = std::move(today);
  auto folder = ULPSCOPE_TRY(TemporaryFolder::Make());
  auto run = ULPSCOPE_TRY(RunNow(*workspace, *name, seed.value_or(0), folder.path() / "run"));
  return FoundRun{.run = std::move(run), .folder = std::move(folder)};
}

}  // namespace ulpscope
