// ulpscope explain ID[@BACKEND]: the derivation of a result, from a recorded run or from one made now.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "harness/casefile/generate.h"
#include "harness/casefile/prove.h"
#include "harness/cli/cli.h"
#include "harness/cli/commands.h"
#include "harness/cli/run_judge.h"
#include "harness/cli/terminal.h"
#include "harness/record/observation_json.h"
#include "harness/run/scheduler.h"
#include "oracles/oracle.h"
#include "reports/explain.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSamples = 4;

struct ExplainArguments {
  std::string what, run;
  std::vector<std::string> adapters;
  int64_t seed = 0;
  bool verbose = false;
};

struct Target {
  std::string id, backend;  ///< backend empty: all of them
};

/// Splits at the first @ : ids hold none, backends may.
Target ParseTarget(const std::string& what) {
  const size_t at = what.find('@');
  return at == std::string::npos ? Target{.id = what, .backend = {}}
                                 : Target{.id = what.substr(0, at), .backend = what.substr(at + 1)};
}

/// The record cut down to what is explained.
void Keep(RecordedRun* run, const Target& target) {
  run->header.cases = {target.id};
  std::erase_if(run->results, [&](const RecordedResult& result) {
    return result.case_id != target.id && BaseOf(result.case_id) != target.id;
  });
}

bool Holds(const RecordedRun& run, const Target& target) {
  return std::any_of(run.results.begin(), run.results.end(), [&](const RecordedResult& result) {
    return result.case_id == target.id && (target.backend.empty() || result.backend == target.backend);
  });
}

/// A recorded run that holds the target as the case stands today; none is no error unless it was asked for by
/// name.
Result<std::optional<RecordedRun>> FindRecorded(const ExplainArguments& arguments, const Target& target,
                                                const Case& test_case) {
  const fs::path dir = arguments.run.empty() ? fs::path("runs/latest") : fs::path(arguments.run);
  if (arguments.run.empty() && !HoldsRun(dir)) return std::nullopt;
  auto run = ReadRun(dir, TensorLoading::kLater);
  if (!run) {
    if (arguments.run.empty()) return std::nullopt;
    return Fail(run.error());
  }
  const auto digest = run->header.digests.find(target.id);
  const bool fits =
      Holds(*run, target) && digest != run->header.digests.end() && digest->second == CaseDigest(test_case);
  if (fits) return std::optional<RecordedRun>(std::move(*run));
  if (arguments.run.empty()) return std::nullopt;
  return Fail(fmt::format("{} holds no result for {}", arguments.run, arguments.what));
}

class Quiet : public RunObserver {
 public:
  void OnResult(const Case&, const BackendSpec&, const Observation&) override {}
};

/// A folder that goes away with its owner.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> Make() {
    std::string name = (fs::temp_directory_path() / "ulpscope-explain-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      return Fail("cannot make a temporary folder in " + fs::temp_directory_path().string());
    return TemporaryFolder(name);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code code;
    if (!path_.empty()) fs::remove_all(path_, code);
  }
  const fs::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

Result<RecordedRun> RunNow(const Workspace& workspace, const Target& target, int64_t seed,
                           const fs::path& dir) {
  std::vector<BackendSpec> backends = DefaultBackends(workspace.registry);
  if (!target.backend.empty()) {
    auto named = ParseBackend(target.backend, workspace.registry);
    if (!named) return Fail(named.error());
    backends = {*named};
  }
  RunOptions options;
  options.seed = seed;
  options.out = dir;
  Quiet observer;
  const InputProvider inputs = [&](const Case& test_case) { return MakeInputs(test_case, seed); };
  const auto summary = RunCases(WithCompanions({*workspace.Find(target.id)}, Steps::kOpened), backends,
                                workspace.registry, inputs, options, observer);
  if (!summary) return Fail(summary.error());
  return ReadRun(summary->dir, TensorLoading::kLater);
}

/// A few elements beside their exact values: those that excluded a model, then the first ones.
std::vector<ReferenceSample> Sample(const CaseOracle& oracle, const std::string& name,
                                    const TensorData& observed, const Classification& classification) {
  std::vector<int64_t> indices;
  const auto add = [&](int64_t index) {
    if (indices.size() < kSamples && index < observed.size() &&
        std::find(indices.begin(), indices.end(), index) == indices.end())
      indices.push_back(index);
  };
  for (const Exclusion& exclusion : classification.excluded) {
    int64_t index = 0;
    for (size_t axis = 0; axis < exclusion.element.size() && axis < observed.shape.size(); ++axis)
      index = index * observed.shape[axis] + exclusion.element[axis];
    add(index);
  }
  for (int64_t index = 0; index < observed.size() && indices.size() < kSamples; ++index) add(index);
  std::vector<ReferenceSample> samples;
  const auto references = oracle.References(name, indices);
  for (size_t i = 0; i < references.size(); ++i) {
    samples.push_back({.element = Coordinates(indices[i], observed.shape),
                       .observed = observed.At(indices[i]),
                       .reference = references[i]});
  }
  return samples;
}

Explanation ExplainCase(const Case& test_case, const RecordedRun& run, const CaseResult& result) {
  Explanation explanation{
      .about = test_case.about, .source = test_case.source, .references = {}, .trace = {}};
  const RecordedResult* found = run.Find(result.id, result.backend);
  auto inputs = MakeInputs(test_case, run.header.seed);
  if (found == nullptr || !inputs) return explanation;
  RecordedResult record = *found;
  if (LoadTrace(run, record)) explanation.trace = std::move(record.observation.trace);
  if (!LoadTensors(run, record)) return explanation;
  const auto oracle = OpenCaseOracle(test_case, std::move(*inputs));
  if (!oracle) return explanation;
  for (const auto& [name, tensor] : record.observation.values) {
    const auto value = result.values.find(name);
    if (!IsFloating(tensor.dtype) || value == result.values.end() || !(*oracle)->Describe(name)) continue;
    explanation.references[name] = Sample(**oracle, name, tensor, value->second.classification);
  }
  return explanation;
}

int RunExplain(const ExplainArguments& arguments) {
  Target target = ParseTarget(arguments.what);
  auto workspace = OpenWorkspace(arguments.adapters);
  if (!workspace) return UsageError(workspace.error());
  if (const auto errors = LoadInto(&*workspace, {target.id}); !errors.empty())
    return UsageError(errors.front());
  const Case* test_case = workspace->Find(target.id);
  if (test_case == nullptr)
    return UsageError(Problem("explain takes one case", "'" + target.id + "'",
                              "a whole id, such as seeds/matmul_out/as_posted"));
  if (!target.backend.empty()) {
    const auto spec = ParseBackend(target.backend, workspace->registry);
    if (!spec) return UsageError(spec.error());
    target.backend = spec->Text();
  }
  auto recorded = FindRecorded(arguments, target, *test_case);
  if (!recorded) return UsageError(recorded.error());
  std::optional<TemporaryFolder> folder;
  if (!*recorded) {
    auto made = TemporaryFolder::Make();
    if (!made) return UsageError(made.error());
    folder.emplace(std::move(*made));
    auto run = RunNow(*workspace, target, arguments.seed, folder->path() / "run");
    if (!run) return UsageError(run.error());
    *recorded = std::move(*run);
  }
  Keep(&**recorded, target);
  auto classified = ReadClassified(**recorded);
  if (!classified) return UsageError(classified.error());
  const auto report = JudgeRun(**recorded, *workspace, &*classified);
  if (!report) return UsageError(report.error());
  ConsoleOptions options = DetectConsole();
  if (arguments.verbose) options.verbosity = ConsoleOptions::Verbosity::kVerbose;
  std::string text;
  for (const auto& result : report->results) {
    if (!target.backend.empty() && result.backend != target.backend) continue;
    if (target.backend.empty() && result.status == Status::kSkip) continue;
    text += (text.empty() ? "" : "\n") +
            WriteExplanation(*report, result, ExplainCase(*test_case, **recorded, result), options);
  }
  Print(text.empty() ? "every backend skips this case\n" : text);
  return 0;
}

}  // namespace

void AddExplainCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* command = app.add_subcommand("explain", "show how a result was classified");
  command->add_option("what", arguments->what, "ID or ID@BACKEND")->required();
  command->add_option("--run", arguments->run,
                      "a run folder (default: runs/latest if it holds the case, else a run made now)");
  command->add_option("--seed", arguments->seed, "seed of the inputs, for a run made now");
  command->add_option("--adapter", arguments->adapters, "an adapter outside this tree")
      ->allow_extra_args(false);
  command->add_flag("-v,--verbose", arguments->verbose, "every excluded model");
  command->callback([arguments, &exit_code] { exit_code = RunExplain(*arguments); });
}

}  // namespace ulpscope
