// Closed sets of the report, and the exit code.
#include "harness/model/run_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"

namespace ulpscope {

std::string_view Name(Status status) {
  static constexpr std::array<std::string_view, 15> kNames{
      "HARNESS", "PROTOCOL", "CRASH", "TIMEOUT", "OOM",        "TAINTED",      "NOT_RUN", "SKIP",
      "NONDET",  "FAIL",     "XFAIL", "XPASS",   "UNMODELLED", "INCONCLUSIVE", "PASS"};
  return kNames[static_cast<size_t>(status)];
}

std::string_view Name(ContractVerdict verdict) {
  static constexpr std::array<std::string_view, 5> kNames{"CONFORMS", "VIOLATES", "UNDETERMINED",
                                                          "UNMODELLED", "NOT_JUDGED"};
  return kNames[static_cast<size_t>(verdict)];
}

std::string_view Name(KnobEffect::ReadBack read_back) {
  static constexpr std::array<std::string_view, 3> kNames{"as_asked", "differs", "not_read_back"};
  return kNames[static_cast<size_t>(read_back)];
}

std::string_view Name(KnobEffect::Effect effect) {
  static constexpr std::array<std::string_view, 6> kNames{"acts",       "trace_only", "no_effect",
                                                          "as_without", "refused",    "not_compared"};
  return kNames[static_cast<size_t>(effect)];
}

std::vector<std::pair<std::string, const ValueResult*>> CaseResult::ValuesInOrder() const {
  std::vector<std::pair<std::string, const ValueResult*>> ordered;
  for (const auto& name : value_order) {
    if (const ValueResult* value = Lookup(values, name)) ordered.emplace_back(name, value);
  }
  return ordered;
}

double CaseResult::Milliseconds() const {
  double sum = 0;
  for (const auto& [part, duration] : durations_ms) {
    if (std::isfinite(duration) && duration > 0) sum += duration;
  }
  return sum;
}

namespace {

/// A contract or an expectation is a check of whatever comes; a value, with a reference or without, is a fact that was observed.
bool IsChecked(const CaseResult& result) {
  return result.status != Status::kSkip && result.status != Status::kNotRun &&
         (result.demanded || (result.outcome.kind == OutcomeKind::kCompleted && !result.values.empty()));
}

/// What two backends give of one case is held against each other: values without a reference too, and outcomes of which only one is
/// an error.
bool IsCompared(const RunReport& report) {
  std::map<std::string_view, std::pair<int, int>> reached;  // of a case: how many completed, how many raised
  for (const CaseResult& result : report.results) {
    if (result.status == Status::kSkip || result.status == Status::kNotRun) continue;
    auto& [completed, raised] = reached[result.id];
    if (result.outcome.kind == OutcomeKind::kCompleted) ++completed;
    if (result.outcome.kind == OutcomeKind::kRaised) ++raised;
    if (completed + raised > 1 && completed > 0) return true;
  }
  return false;
}

}  // namespace

bool IsAnythingChecked(const RunReport& report) {
  return std::ranges::any_of(report.results, IsChecked) || IsCompared(report);
}

int ExitCode(const RunReport& report, Interruption interruption) {
  const auto any = [&](std::initializer_list<Status> statuses) {
    return std::ranges::any_of(report.results,
                               [&](const CaseResult& result) { return Contains(statuses, result.status); });
  };
  if (any({Status::kHarness})) return 3;
  if (std::ranges::any_of(report.account, [](const AccountEntry& entry) { return entry.by.empty(); }))
    return 3;
  if (interruption == Interruption::kInterrupted) return 2;
  if (any({Status::kCrash, Status::kTimeout, Status::kOom, Status::kProtocol, Status::kTainted})) return 6;
  if (report.limit || (report.stopped_after == 0 && any({Status::kNotRun}))) return 6;
  if (any({Status::kFail, Status::kXpass, Status::kNondet, Status::kUnmodelled, Status::kInconclusive}))
    return 1;
  return IsAnythingChecked(report) ? 0 : 5;
}

std::string ProvedOnSentence(const std::vector<ProvedOn>& inputs) {
  if (inputs.empty()) return "";
  std::vector<std::string> names;
  for (const ProvedOn& input : inputs)
    names.push_back(input.left_out.empty() ? input.name
                                           : input.name + " (" + input.left_out + ": it proves nothing)");
  return "judged on " + Counted(inputs.size(), "auxiliary input") + " too: " + Join(names, ", ");
}

}  // namespace ulpscope
