// Selecting what a run runs.
#include "harness/cli/run_selection.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/base/text.h"
#include "harness/cli/choose_backends.h"
#include "harness/cli/commands.h"
#include "harness/cli/resumed_run.h"
#include "harness/cli/run_report_files.h"
#include "harness/cli/select.h"
#include "harness/cli/shard_auto.h"
#include "harness/cli/terminal.h"
#include "harness/record/observation_json.h"
#include "harness/record/run_file.h"

namespace ulpscope {
namespace {

constexpr int64_t kMostReportBytes = int64_t{4} << 30;

/// Ids of the results in `file` (a report.json) that failed.
Result<std::set<std::string>> FailedIds(const RunFile& file) {
  const auto text = ReadRunFile(file, kMostReportBytes);
  if (!text) return Fail("--lf: no earlier run here (" + text.error().Text() + ")");
  const auto report = nlohmann::json::parse(*text, nullptr, false);
  if (!report.is_object() || !report.contains("results") || !report["results"].is_array())
    return Fail("--lf: " + file.path().string() + " is no report");
  static const std::set<std::string> kGood{"PASS", "SKIP", "XFAIL"};
  std::set<std::string> failed;
  for (const auto& result : report["results"]) {
    if (!result.is_object()) continue;
    if (!kGood.contains(result.value("status", "PASS"))) failed.insert(result.value("id", ""));
  }
  return failed;
}

/// "2/3", or the part that the scheduler gave to this process.
Result<Shard> ShardFor(const std::string& text) {
  if (text != "auto") return ParseShard(text);
  const auto found = ULPSCOPE_TRY(ShardOfEnvironment([](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }));
  // A test runner that does not see its file takes it that every shard runs everything.
  if (!found.status_file.empty()) {
    ULPSCOPE_TRY(WriteFile(found.status_file, ""));
  }
  return found.shard;
}

/// The cases of this run, and of a shard the plan that it belongs to.
Result<std::vector<Case>> Select(std::vector<Case> cases, const Selection& arguments, Preparation* prepared) {
  const auto keep = [&](auto wanted) { std::erase_if(cases, [&](const Case& c) { return !wanted(c); }); };
  if (!arguments.expression.empty()) {
    const auto expression = ULPSCOPE_TRY(IdExpression::Parse(arguments.expression));
    keep([&](const Case& c) { return expression.Matches(c.id); });
  }
  if (arguments.knob_sweep && arguments.cases.empty() && arguments.tags.empty())
    keep([&](const Case& c) { return HasTag(c, "knobs"); });
  if (!arguments.tags.empty()) keep([&](const Case& c) { return HasTag(c, arguments.tags); });
  if (arguments.last_failed) {
    const auto failed = ULPSCOPE_TRY(FailedIds({.folder = "runs/latest", .name = "report.json"}));
    keep([&](const Case& c) { return failed.contains(c.id); });
  }
  if (arguments.knob_sweep || !arguments.shard.empty() || prepared->frozen)
    prepared->plan = PlanOf(WithCompanions(cases, StepsOf(arguments)), *prepared);
  if (!arguments.shard.empty()) {
    const auto shard = ULPSCOPE_TRY(ShardFor(arguments.shard));
    return TakeShard(std::move(cases), shard,
                     prepared->frozen ? prepared->frozen->milliseconds : std::map<std::string, double>());
  }
  return cases;
}

/// Whether a selection names no cases: then those of the continued run are meant.
bool TakesCases(const Selection& selection) {
  return selection.cases.empty() && !selection.last_failed && selection.shard.empty() &&
         !selection.knob_sweep;
}

/// Errors of the cases are reported before an adapter is started.
Result<Workspace> OpenSelected(const Selection& arguments) {
  std::vector<Error> errors;
  auto workspace = ULPSCOPE_TRY(OpenWithCases(arguments.adapters, arguments.cases, &errors));
  if (errors.empty()) return workspace;
  for (const Error& error : errors) PrintError(error);
  return Fail(Counted(errors.size(), "error") + " in the cases, nothing was run");
}

Result<void> ChooseColumns(const Selection& arguments, const RecordedRun* resumed, Preparation* prepared) {
  const Registry& registry = prepared->workspace.registry;
  const bool takes_all =
      resumed != nullptr && arguments.backends.empty() && arguments.knobs.empty() && !arguments.knob_sweep;
  if (takes_all) {
    prepared->backends = ULPSCOPE_TRY(BackendsToResume(*resumed, registry));
    prepared->not_installed = resumed->header.not_installed;
    prepared->sweep = SweepToResume(resumed->header, prepared->backends);
    prepared->selection.knob_sweep = !resumed->header.swept.empty();
    return {};
  }
  auto chosen =
      ULPSCOPE_TRY(ChooseBackends({.list = arguments.backends, .knobs = arguments.knobs}, registry));
  prepared->backends = std::move(chosen.backends);
  prepared->not_installed = std::move(chosen.not_installed);
  if (!arguments.knob_sweep) return {};
  prepared->sweep = ULPSCOPE_TRY(SweepKnobs(registry, prepared->backends));
  prepared->backends = prepared->sweep.backends;
  for (const auto& why : prepared->sweep.left_out) PrintError("ulpscope: not queried: " + why);
  return {};
}

/// The text must be the number that it is read as: no octal, no truncation.
std::string CheckSeed(const std::string& text) {
  const auto number = WholeNumber<int64_t>(text);
  return number && std::to_string(*number) == text ? ""
                                                   : "'" + text + "' is no whole number from -2^63 to 2^63-1";
}

}  // namespace

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

Result<std::optional<RecordedRun>> ReadToResume(const std::string& dir, const Selection& selection) {
  std::optional<RecordedRun> none;
  if (HoldsRun(dir)) {
    auto run = ULPSCOPE_TRY(ReadRun(dir, TensorLoading::kLater));
    return std::optional(std::move(run));
  }
  if (!TakesCases(selection) || !selection.expression.empty() || !selection.tags.empty()) return none;
  return Fail(Problem("--resume goes on with a run, and " + dir + " holds none", {}, {},
                      "name the cases that a new one is to run"));
}

void TakeUnsaid(const RecordedRun& run, const Said& said, Selection* selection) {
  const RunHeader& header = run.header;
  if (!said("--seed")) selection->seed = header.seed;
  if (!said("--repeat")) selection->repeat = static_cast<int>(header.repeat);
  if (!said("--no-trace")) selection->no_trace = !header.trace;
  if (!said("--no-steps") && TakesCases(*selection)) selection->no_steps = !HasOpenedPrograms(header);
}

Steps StepsOf(const Selection& arguments) {
  return arguments.knob_sweep || arguments.no_steps ? Steps::kTogether : Steps::kOpened;
}

Result<std::optional<Preparation>> Prepare(const Selection& arguments, std::optional<FrozenPlan> frozen,
                                           const RecordedRun* resumed) {
  if (!arguments.expression.empty()) ULPSCOPE_TRY(IdExpression::Parse(arguments.expression));
  const bool takes_cases = resumed != nullptr && TakesCases(arguments);
  auto workspace = ULPSCOPE_TRY(takes_cases ? OpenWorkspace(arguments.adapters) : OpenSelected(arguments));
  PrintNotes(workspace.notes);
  Preparation prepared{
      .selection = arguments, .frozen = std::move(frozen), .workspace = std::move(workspace)};
  if (takes_cases) ULPSCOPE_TRY(LoadCasesToResume(*resumed, &prepared.workspace));
  ULPSCOPE_TRY(ChooseColumns(arguments, resumed, &prepared));
  if (takes_cases) prepared.plan = resumed->header.plan;
  prepared.workspace.cases = ULPSCOPE_TRY(Select(std::move(prepared.workspace.cases), arguments, &prepared));
  if (prepared.backends.empty()) {
    PrintError("ulpscope: no backend is installed; ulpscope doctor says what is missing");
    return std::nullopt;
  }
  // A part without a case is still a part: merging needs all parts, and its plan shows which run it is of.
  if (prepared.workspace.cases.empty() && prepared.plan.empty()) {
    PrintError("ulpscope: no case is selected");
    return std::nullopt;
  }
  return prepared;
}

void AddSelectionOptions(CLI::App* command, Selection* arguments) {
  command->add_option("cases", arguments->cases,
                      "ids, id prefixes, files or folders (default: the whole suite)");
  command->add_option("-b,--backends", arguments->backends,
                      "NAME[@DEVICE][:knob=value,...], joined by commas; `all` for every known one (default: "
                      "every installed one)");
  command->add_option("-k", arguments->expression, "only ids that match: substrings with and, or, not, ( )");
  command->add_option("-m", arguments->tags,
                      "only cases with one of these tags; tiers nest: smoke < ci < nightly");
  command->add_option("--seed", arguments->seed, "seed of the inputs")
      ->check(CLI::Validator(CheckSeed, "INT"));
  command->add_option("--knob", arguments->knobs, "K=V for every backend that takes K")
      ->allow_extra_args(false);
  command->add_flag(
      "--knob-sweep", arguments->knob_sweep,
      "every value of every knob of each backend against its default, on the cases tagged with the "
      "knob's name (without cases: those tagged `knobs`); prints what each was set to, read back, and "
      "changed");
  command->add_option("--repeat", arguments->repeat, "runs of each case, compared bit by bit")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--no-steps", arguments->no_steps,
                    "do not run programs once more with every intermediate observed: each value is judged "
                    "as one with all that it is computed from");
  command->add_flag("--no-trace", arguments->no_trace, "do not ask for casts");
  AddAdapterOption(command, &arguments->adapters);
}

}  // namespace ulpscope
