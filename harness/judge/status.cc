// The status table.
#include "harness/judge/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/num/float_format.h"

namespace ulpscope {
namespace {

using Rule = std::optional<StatusReason> (*)(const StatusFacts&);

StatusReason Say(Status status, std::string reason, std::vector<std::string> values = {}) {
  std::erase(values, "");
  return {.status = status, .reason = std::move(reason), .values = std::move(values)};
}

std::vector<std::string> ValuesOf(const std::vector<Finding>& findings) {
  std::vector<std::string> values;
  for (const Finding& finding : findings) values.push_back(finding.value);
  return values;
}

std::string OrElse(const std::string& text, std::string_view otherwise) {
  return text.empty() ? std::string(otherwise) : text;
}

std::string Sentences(const std::vector<Finding>& findings) {
  std::vector<std::string> sentences;
  for (const Finding& finding : findings) sentences.push_back(finding.sentence);
  return Join(sentences, "; ");
}

std::optional<StatusReason> Harness(const StatusFacts& facts) {
  if (facts.harness_fault.empty()) return std::nullopt;
  return Say(Status::kHarness, facts.harness_fault);
}

std::optional<StatusReason> WorkerBroke(const StatusFacts& facts) {
  const std::string& text = facts.outcome.text;
  switch (facts.outcome.kind) {
    case OutcomeKind::kProtocolBroken:
      return Say(Status::kProtocol, OrElse(text, "the adapter broke the protocol"));
    case OutcomeKind::kCrashed: {
      std::string reason = "the worker ended";
      if (!facts.outcome.error_class.empty()) reason += " by " + facts.outcome.error_class;
      return Say(Status::kCrash, text.empty() ? reason : reason + ": " + text);
    }
    case OutcomeKind::kTimedOut:
      return Say(Status::kTimeout, OrElse(text, "no answer within the deadline"));
    case OutcomeKind::kOutOfMemory:
      return Say(Status::kOom, OrElse(text, "out of memory"));
    case OutcomeKind::kCompleted:
    case OutcomeKind::kRaised:
    case OutcomeKind::kUnsupported:
      break;
  }
  if (facts.taint.empty()) return std::nullopt;
  return Say(Status::kTainted, facts.taint);
}

std::optional<StatusReason> NotReached(const StatusFacts& facts) {
  if (facts.reach == StatusFacts::Reach::kReached) return std::nullopt;
  return Say(Status::kNotRun, OrElse(facts.outcome.text, "not reached"));
}

std::optional<StatusReason> Unsupported(const StatusFacts& facts) {
  if (facts.outcome.kind != OutcomeKind::kUnsupported) return std::nullopt;
  return Say(Status::kSkip, OrElse(facts.outcome.text, "unsupported"));
}

std::optional<StatusReason> Nondeterministic(const StatusFacts& facts) {
  if (facts.nondeterministic.empty()) return std::nullopt;
  std::vector<std::string> parts;
  for (const auto& [value, spread] : facts.nondeterministic) {
    parts.push_back(fmt::format("{} by up to {} ulp", value, ShortestDecimal(spread)));
  }
  return Say(Status::kNondet, "repeated runs differ: " + Join(parts, ", "), Keys(facts.nondeterministic));
}

const Deviation* FindDeviation(const StatusFacts& facts, const std::string& value) {
  const auto entry = std::ranges::find_if(
      facts.live_deviations, [&](const Deviation& deviation) { return deviation.value == value; });
  return entry == facts.live_deviations.end() ? nullptr : &*entry;
}

std::optional<StatusReason> Violated(const StatusFacts& facts) {
  if (facts.violations.empty()) return std::nullopt;
  std::vector<std::string> reasons;
  for (const Finding& violation : facts.violations) {
    const Deviation* deviation = FindDeviation(facts, violation.value);
    if (deviation == nullptr)
      return Say(Status::kFail, Sentences(facts.violations), ValuesOf(facts.violations));
    reasons.push_back(deviation->link.empty() ? deviation->reason
                                              : deviation->reason + " (" + deviation->link + ")");
  }
  return Say(Status::kXfail,
             fmt::format("known deviation: {}: {}", Join(reasons, "; "), Sentences(facts.violations)),
             ValuesOf(facts.violations));
}

std::optional<StatusReason> StaleDeviation(const StatusFacts& facts) {
  if (facts.live_deviations.empty()) return std::nullopt;
  const Deviation& deviation = facts.live_deviations.front();
  const std::string subject = deviation.value.empty() ? "the outcome" : deviation.value;
  return Say(Status::kXpass,
             fmt::format("{} conforms, yet a deviation is listed for it: {}; remove the entry", subject,
                         deviation.reason),
             {deviation.value});
}

std::optional<StatusReason> Changed(const StatusFacts& facts) {
  if (facts.unmet_expectation.empty()) return std::nullopt;
  return Say(Status::kFail, facts.unmet_expectation, {facts.unmet_value});
}

std::optional<StatusReason> Unmodelled(const StatusFacts& facts) {
  if (facts.unmodelled.empty()) return std::nullopt;
  return Say(Status::kUnmodelled, Sentences(facts.unmodelled), ValuesOf(facts.unmodelled));
}

std::optional<StatusReason> Inconclusive(const StatusFacts& facts) {
  if (facts.undetermined.empty()) return std::nullopt;
  return Say(Status::kInconclusive, Sentences(facts.undetermined), ValuesOf(facts.undetermined));
}

constexpr std::array<Rule, 10> kTable{Harness,  WorkerBroke,    NotReached, Unsupported, Nondeterministic,
                                      Violated, StaleDeviation, Changed,    Unmodelled,  Inconclusive};

}  // namespace

StatusReason DecideStatus(const StatusFacts& facts) {
  for (const Rule rule : kTable) {
    if (auto verdict = rule(facts)) return *std::move(verdict);
  }
  return {};
}

}  // namespace ulpscope
