// ulpscope baseline review | accept | prune: the known deviations from contracts, one line each in cases/deviations.yaml.
//
// The judge alone decides what an entry covers: an entry is written, the run is judged with it, and one that
// covers nothing is taken back. Every entry has a reason, a link and a day on which it ends.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/deviations.h"
#include "harness/cli/baseline_file.h"
#include "harness/cli/commands.h"
#include "harness/cli/exit_codes.h"
#include "harness/cli/run_report_files.h"
#include "harness/cli/terminal.h"
#include "harness/judge/judge.h"
#include "harness/judging/judged_run.h"
#include "harness/model/versions.h"
#include "harness/record/file_bytes.h"
#include "harness/words/backend_name.h"
#include "harness/workspace/recorded_run.h"
#include "reports/cell.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

struct BaselineArguments {
  std::string run = "runs/latest";
  std::string result, versions, reason, link, expires;
};

fs::path DeviationsFile(const Workspace& workspace) { return workspace.root / "deviations.yaml"; }

constexpr int64_t kMostBaselineBytes = int64_t{64} << 20;

Result<std::string> ReadBaseline(const fs::path& file) {
  std::error_code code;
  if (!fs::exists(file, code)) return std::string();
  return ReadFileBytes(file, kMostBaselineBytes);
}

/// The values of a result that violate its contract; the empty name is the outcome. Nothing where no contract does.
std::vector<std::string> ViolatedValues(const CaseResult& result) {
  std::vector<std::string> names;
  for (const auto& [name, value] : result.ValuesInOrder()) {
    if (value->contract == ContractVerdict::kViolates) names.push_back(name);
  }
  const bool violates = result.status == Status::kFail || result.status == Status::kXfail;
  if (names.empty() && violates && !result.reason.starts_with("changed")) names.emplace_back();
  return names;
}

std::string FoundText(const CaseResult& result, const std::string& value) {
  return value.empty() ? Describe(result.outcome) : CellText(result.values.at(value));
}

const CaseResult* FindResult(const RunReport& report, const ResultName& name) {
  const auto found = std::ranges::find_if(report.results, [&](const CaseResult& result) {
    return result.id == name.id && CanonicalBackend(result.backend) == CanonicalBackend(name.backend);
  });
  return found == report.results.end() ? nullptr : &*found;
}

/// Why an entry can go; empty where it stays. An entry that this run did not try stays.
std::string WhyStale(const Deviation& entry, const RunReport& report, const std::string& today) {
  if (!entry.expires.empty() && entry.expires < today) return "expired on " + entry.expires;
  const CaseResult* result = FindResult(report, {.id = entry.case_id, .backend = entry.backend});
  if (result == nullptr || (result->status != Status::kXpass && result->status != Status::kXfail)) return "";
  const auto matches = VersionsMatch(entry.versions, LookupOr(report.versions, result->backend));
  if (!matches || !*matches) return "";
  const auto violated = ViolatedValues(*result);
  if (Contains(violated, entry.value)) return "";
  return (entry.value.empty() ? std::string("the outcome") : entry.value) + " conforms";
}

std::string EntryText(const Deviation& entry) {
  return TerminalSafe(entry.case_id + "@" + entry.backend + (entry.value.empty() ? "" : " " + entry.value));
}

Result<int> Review(const BaselineArguments& arguments) {
  const auto judged = ULPSCOPE_TRY(JudgeRecorded(arguments.run, {}, Source::kRecorded));
  const RunReport& report = judged->report;
  const std::string today = Today();
  size_t fresh = 0, known = 0, stale = 0;
  std::string text;
  for (const CaseResult& result : report.results) {
    known += result.status == Status::kXfail;
    if (result.status != Status::kFail) continue;
    for (const auto& value : ViolatedValues(result)) {
      ++fresh;
      const std::string target = result.id + "@" + result.backend;
      text += TerminalSafe(fmt::format("new    {}{}: {}", target, value.empty() ? "" : " " + value,
                                       FoundText(result, value))) +
              "\n";
      text += TerminalSafe("       " + result.reason) + "\n";
      text += TerminalSafe(fmt::format(
                  "       ulpscope baseline accept {} --run {} --reason WHY --link URL --expires DAY",
                  ShellQuote(target), ShellQuote(arguments.run))) +
              "\n";
    }
  }
  for (const Deviation& entry : judged->workspace.deviations) {
    const std::string why = WhyStale(entry, report, today);
    if (why.empty()) continue;
    ++stale;
    text += fmt::format("stale  {}: {} (line {})\n", EntryText(entry), why, entry.pos.line);
  }
  text += fmt::format("{} new, {} known, {} stale{}\n", fresh, known, stale,
                      stale == 0 ? "" : "; ulpscope baseline prune takes the stale ones away");
  Print(text);
  return fresh + stale == 0 ? 0 : kExitNot;
}

Result<void> CheckAccept(const BaselineArguments& arguments) {
  if (arguments.reason.find_first_not_of(" \t") == std::string::npos)
    return Fail(Problem("--reason is empty", {}, "why it is known and left"));
  if (!arguments.link.starts_with("https://") && !arguments.link.starts_with("http://"))
    return Fail(
        Problem("--link is no link", "'" + arguments.link + "'", "https://..., the issue that tracks it"));
  if (!IsDay(arguments.expires))
    return Fail(Problem("--expires is no day", "'" + arguments.expires + "'", "YYYY-MM-DD"));
  if (arguments.expires < Today())
    return Fail(Problem("--expires has passed", arguments.expires, "today or later"));
  return {};
}

/// `edited` in the place of the file, if it reads as what it should.
Result<void> WriteBaseline(const fs::path& file, const std::string& edited, const Registry& registry) {
  const auto read = LoadDeviationsText(edited, file.generic_string(), {.backends = registry.Names()});
  if (!read.errors.empty()) return Fail(read.errors.front());
  return WriteFile(file, edited);
}

Result<int> Accept(const BaselineArguments& arguments) {
  ULPSCOPE_TRY(CheckAccept(arguments));
  const auto judged = ULPSCOPE_TRY(JudgeRecorded(arguments.run, {}, Source::kRecorded));
  const ResultName name = ParseResultName(arguments.result);
  const CaseResult* result = FindResult(judged->report, name);
  if (result == nullptr)
    return Fail(Problem(arguments.run + " holds no result for " + arguments.result, {}, "ID@BACKEND"));
  if (result->status != Status::kFail || ViolatedValues(*result).empty())
    return Fail(Problem(arguments.result + " violates no contract", std::string(Name(result->status)),
                        "FAIL, by a violated contract"));
  std::vector<Deviation> added;
  for (const auto& value : ViolatedValues(*result)) {
    added.push_back({.case_id = result->id,
                     .backend = result->backend,
                     .value = value,
                     .versions = arguments.versions,
                     .found = FoundText(*result, value),
                     .reason = arguments.reason,
                     .link = arguments.link,
                     .expires = arguments.expires});
  }
  const fs::path file = DeviationsFile(judged->workspace);
  const auto before = ULPSCOPE_TRY(ReadBaseline(file));
  ULPSCOPE_TRY(WriteBaseline(file, WithDeviations(before, added), judged->workspace.registry));
  const auto again = JudgeRecorded(arguments.run, {}, Source::kRecorded);
  const CaseResult* now = again ? FindResult((*again)->report, name) : nullptr;
  if (now == nullptr || now->status != Status::kXfail) {
    ULPSCOPE_TRY(WriteFile(file, before));
    return Fail(again ? Problem("the entry would cover nothing, and was not written",
                                now == nullptr ? "" : now->reason, {},
                                "do --versions and --expires hold for the run?")
                      : again.error());
  }
  for (const Deviation& entry : added)
    Print("accepted  " + EntryText(entry) + " until " + entry.expires + "\n");
  return 0;
}

Result<int> Prune(const BaselineArguments& arguments) {
  const auto judged = ULPSCOPE_TRY(JudgeRecorded(arguments.run, {}, Source::kRecorded));
  const std::string today = Today();
  std::set<int> lines;
  std::string text;
  for (const Deviation& entry : judged->workspace.deviations) {
    const std::string why = WhyStale(entry, judged->report, today);
    if (why.empty()) continue;
    lines.insert(entry.pos.line);
    text += fmt::format("removed  {}: {}\n", EntryText(entry), why);
  }
  const fs::path file = DeviationsFile(judged->workspace);
  if (!lines.empty()) {
    const auto before = ULPSCOPE_TRY(ReadBaseline(file));
    ULPSCOPE_TRY(WriteBaseline(file, WithoutLines(before, lines), judged->workspace.registry));
  }
  Print(text + fmt::format("{} removed\n", lines.size()));
  return 0;
}

}  // namespace

void AddBaselineCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "baseline", "the known deviations from contracts (cases/deviations.yaml), one line each");
  command->require_subcommand(1);
  CLI::App* review =
      command->add_subcommand("review", "what a run violates that is not known, and what is known no longer");
  BaselineArguments* arguments = OptionsOf(review, exit_code, Review);
  review->add_option("run", arguments->run, "a run folder (default: runs/latest)");
  review->footer("Exits 1 where there is something to accept or to prune.");
  CLI::App* accept = command->add_subcommand("accept", "one violation becomes a known deviation");
  arguments = OptionsOf(accept, exit_code, Accept);
  accept->add_option("result", arguments->result, "ID@BACKEND: a result of the run")->required();
  accept->add_option("--run", arguments->run, "the run that shows it (default: runs/latest)");
  accept->add_option("--reason", arguments->reason, "why it is known and left")->required();
  accept->add_option("--link", arguments->link, "the issue that tracks it")->required();
  accept->add_option("--expires", arguments->expires, "YYYY-MM-DD, the last day on which it holds")
      ->required();
  accept->add_option("--versions", arguments->versions,
                     "only for these, such as \"torch>=2.13,<2.14\" (default: any)");
  CLI::App* prune =
      command->add_subcommand("prune", "takes away what has expired, and what a run shows to conform");
  arguments = OptionsOf(prune, exit_code, Prune);
  prune->add_option("run", arguments->run, "a run folder (default: runs/latest)");
}

}  // namespace ulpscope
