// Judging one case, and putting a report together.
#include "harness/judge/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/combine.h"
#include "harness/judge/contract.h"
#include "harness/judge/contract_findings.h"
#include "harness/judge/expect.h"
#include "harness/judge/sentence.h"
#include "harness/judge/status.h"
#include "harness/num/float_format.h"
#include "harness/words/backend_name.h"
#include "harness/words/environment_name.h"

namespace ulpscope {
namespace {

CaseResult EmptyResult(const Case& test_case, const std::string& backend, const JudgeContext& context) {
  CaseResult result;
  result.id = test_case.id;
  result.backend = backend;
  result.repro = ReproLine(test_case.id, backend, context);
  return result;
}

std::vector<std::string> StagesOf(const Observation& observation) {
  std::vector<std::string> stages;
  for (const std::string_view stage : kTraceStages) {
    const auto here = [&](const auto& entry) { return entry.stage == stage; };
    if (std::ranges::any_of(observation.trace, here) || std::ranges::any_of(observation.casts, here)) {
      stages.emplace_back(stage);
    }
  }
  return stages;
}

void CopyFacts(const Observation& observation, CaseResult* result) {
  result->outcome = observation.outcome;
  result->knobs_asked = observation.knobs_asked;
  result->knobs_effective = observation.knobs_effective;
  result->observations = observation.observations;
  result->casts = observation.casts;
  result->cast_costs = CostOfCasts(observation.casts, observation.trace);
  result->stages = StagesOf(observation);
  result->notes = observation.notes;
  result->untraced = observation.untraced;
  result->durations_ms = observation.durations_ms;
}

void JudgeValues(const Case& test_case, const Observation& observation,
                 const std::map<std::string, Classification>& classifications, CaseResult* result) {
  for (const auto& [name, tensor] : observation.values) {
    ValueResult value{.dtype = tensor.dtype,
                      .shape = tensor.shape,
                      .bits = BitsOf(tensor),
                      .part = {},
                      .classification = {}};
    if (const auto part = observation.parts.find(name); part != observation.parts.end())
      value.part = part->second;
    if (const auto known = classifications.find(name); known != classifications.end()) {
      value.classification = known->second;
    } else {
      value.classification.elements = tensor.size();
    }
    value.contract = JudgeContract(test_case, name, value);
    result->values.emplace(name, std::move(value));
  }
  for (const auto& name : ProgramOrder(test_case)) {
    if (result->values.contains(name)) result->value_order.push_back(name);
  }
  for (const auto& [name, value] : result->values) {
    const auto& order = result->value_order;
    if (!Contains(order, name)) result->value_order.push_back(name);
  }
}

std::string OutcomeViolation(const Case& test_case, const CaseResult& result) {
  if (result.outcome.kind == OutcomeKind::kRaised) {
    return fmt::format("raised {}, which the contract does not allow: {}",
                       result.outcome.error_class.empty() ? "an error" : result.outcome.error_class,
                       FirstLine(result.outcome.text, 160));
  }
  if (test_case.contract.values.empty()) return "completed, though the contract demands that it raises";
  for (const auto& [name, demand] : test_case.contract.values) {
    if (!result.values.contains(name))
      return fmt::format("{} does not exist, the contract says {}", name, Describe(demand));
  }
  return "the outcome violates the contract";
}

/// Entries for this case and backend whose versions match and whose date has not passed. Error: unreadable versions.
Result<std::vector<Deviation>> LiveDeviations(const Case& test_case, const std::string& backend,
                                              const JudgeContext& context) {
  std::vector<Deviation> live;
  for (const Deviation& deviation : context.deviations) {
    if (deviation.case_id != test_case.id ||
        (CanonicalBackend(deviation.backend) != CanonicalBackend(backend) &&
         CanonicalBackend(deviation.backend) != SplitEnvironment(backend).backend))
      continue;
    const auto matches = VersionsMatch(deviation.versions, context.versions);
    if (!matches) return Fail(matches.error());
    // ISO dates compare as text. Without a recorded date nothing expires.
    const bool expired =
        !deviation.expires.empty() && !context.date.empty() && deviation.expires < context.date;
    if (*matches && !expired) live.push_back(deviation);
  }
  return live;
}

/// The reason why a result passes without anything having been checked.
std::string WhyNothingIsChecked(const CaseResult& result) {
  if (result.outcome.kind == OutcomeKind::kRaised) {
    const std::string& error = result.outcome.error_class;
    return fmt::format("nothing was checked: it raised {}: {}", error.empty() ? "an error" : error,
                       FirstLine(result.outcome.text, 160));
  }
  if (result.outcome.kind != OutcomeKind::kCompleted) return "";
  std::string why;
  for (const auto& [name, value] : result.values) {
    const Classification& classification = value.classification;
    if (!IsFloating(value.dtype)) continue;
    if (classification.checked > 0 || classification.elements == 0) return "";
    if (why.empty() && !classification.notes.empty()) why = ": " + classification.notes.front().text;
    if (why.empty()) why = ": no reference";
  }
  return why.empty() ? "" : "no element was checked against an exact value" + why;
}

void Decide(const Case& test_case, const JudgeContext& context, StatusFacts facts, CaseResult* result) {
  facts.outcome = result->outcome;
  if (JudgeOutcome(test_case, result->outcome, result->value_order) == ContractVerdict::kViolates) {
    facts.violations.push_back({.value = "", .sentence = OutcomeViolation(test_case, *result)});
  }
  AddValueFindings(test_case, *result, context.provable, &facts);
  const auto live = LiveDeviations(test_case, result->backend, context);
  if (live) facts.live_deviations = *live;
  const auto expectation = FindExpectation(test_case, result->backend, context.versions);
  if (!live) {
    facts.unmet_expectation = "a deviation entry cannot be read: " + live.error().Text();
  } else if (!expectation) {
    facts.unmet_expectation = "an expectation cannot be read: " + expectation.error().Text();
  } else if (*expectation != nullptr) {
    Unmet unmet = ExplainUnmet(**expectation, *result);
    facts.unmet_expectation = std::move(unmet.sentence);
    facts.unmet_value = std::move(unmet.value);
  }
  StatusReason verdict = DecideStatus(facts);
  result->status = verdict.status;
  for (const Finding& violation : facts.violations) {
    if (violation.by && Contains(verdict.values, violation.value))
      result->cited.emplace(violation.value, *violation.by);
  }
  result->reason = std::move(verdict.reason);
  result->status_values = std::move(verdict.values);
  result->demanded = test_case.contract.demands() || (expectation && *expectation != nullptr);
  if (result->status == Status::kPass && !result->demanded) result->reason = WhyNothingIsChecked(*result);
}

struct Position {
  int group = 0;  ///< 0: made by a step, 1: a gradient, 2: a tensor at the end, 3: unknown
  size_t step = 0;
};

void NumberSteps(const std::vector<Step>& steps, std::map<std::string, size_t>* order) {
  for (const Step& step : steps) {
    if (!step.as.empty()) order->try_emplace(step.as, order->size());
    NumberSteps(step.steps, order);
  }
}

}  // namespace

CaseResult JudgeCase(const Case& test_case, const std::string& backend, const Observation& observation,
                     const std::map<std::string, Classification>& classifications,
                     const JudgeContext& context) {
  CaseResult result = EmptyResult(test_case, backend, context);
  CopyFacts(observation, &result);
  JudgeValues(test_case, observation, classifications, &result);
  if (context.proof != nullptr) ApplyProof(*context.proof, &result);
  StatusFacts facts;
  facts.taint = FindTaint(observation);
  facts.nondeterministic = observation.nondeterministic;
  CompareValues(test_case.contract, observation, result, &facts);
  Decide(test_case, context, std::move(facts), &result);
  return result;
}

CaseResult NotReachedResult(const Case& test_case, const std::string& backend, const std::string& why,
                            const JudgeContext& context) {
  CaseResult result = EmptyResult(test_case, backend, context);
  // The closed set of outcomes has no word for "never begun"; nothing was supported or refused either.
  result.outcome = {.kind = OutcomeKind::kUnsupported, .error_class = {}, .text = why};
  StatusFacts facts;
  facts.reach = StatusFacts::Reach::kNotReached;
  facts.outcome = result.outcome;
  const StatusReason verdict = DecideStatus(facts);
  result.status = verdict.status;
  result.reason = verdict.reason;
  return result;
}

CaseResult HarnessFaultResult(const Case& test_case, const std::string& backend,
                              const Observation& observation, const std::string& fault,
                              const JudgeContext& context) {
  CaseResult result = EmptyResult(test_case, backend, context);
  CopyFacts(observation, &result);
  StatusFacts facts;
  facts.harness_fault = fault;
  const StatusReason verdict = DecideStatus(facts);
  result.status = verdict.status;
  result.reason = verdict.reason;
  return result;
}

std::vector<std::string> ProgramOrder(const Case& test_case) {
  std::map<std::string, size_t> steps;
  NumberSteps(test_case.program, &steps);
  const auto position = [&](const std::string& name) {
    if (const auto step = steps.find(name); step != steps.end())
      return Position{.group = 0, .step = step->second};
    const bool gradient = name.ends_with(".grad");
    return Position{.group = gradient ? 1 : test_case.FindTensor(name) != nullptr ? 2 : 3, .step = 0};
  };
  std::vector<std::string> order = test_case.observe;
  std::ranges::stable_sort(order, [&](const std::string& a, const std::string& b) {
    const Position left = position(a);
    const Position right = position(b);
    return std::pair(left.group, left.step) < std::pair(right.group, right.step);
  });
  return order;
}

std::string ReproLine(const std::string& id, const std::string& backend, const JudgeContext& context) {
  if (context.start == JudgeContext::Start::kByCaller)
    return fmt::format(
        "# call again what called ulpscope: {} is made of its functions, which no command starts", backend);
  const std::string selector = context.selector.empty() ? ShellQuote(id) : context.selector;
  std::string line =
      fmt::format("ulpscope run {} -b {} --seed {}", selector, ShellQuote(backend), context.seed);
  if (!context.extra_flags.empty()) line += " " + context.extra_flags;
  return line;
}

RunReport BuildReport(RunFacts facts, std::vector<CaseResult> results, std::vector<Divergence> divergences) {
  std::unordered_map<std::string, size_t> ranks;
  for (const auto& backend : facts.backends) ranks.try_emplace(backend, ranks.size());
  const auto rank = [&](const std::string& backend) {
    const auto at = ranks.find(backend);
    return at == ranks.end() ? ranks.size() : at->second;
  };
  std::ranges::stable_sort(results, [&](const CaseResult& a, const CaseResult& b) {
    return std::tuple(a.id, rank(a.backend), a.backend) < std::tuple(b.id, rank(b.backend), b.backend);
  });
  std::ranges::stable_sort(divergences, [](const Divergence& a, const Divergence& b) {
    return std::tie(a.case_id, a.kind) < std::tie(b.case_id, b.kind);
  });
  RunReport report;
  report.seed = facts.seed;
  report.complete = facts.complete;
  report.stopped_after = facts.stopped_after;
  report.versions = std::move(facts.versions);
  report.not_installed = std::move(facts.not_installed);
  report.environment = std::move(facts.environment);
  report.id = std::move(facts.id);
  report.started = std::move(facts.started);
  report.durations_s = std::move(facts.durations_s);
  report.results = std::move(results);
  report.divergences = std::move(divergences);
  return report;
}

}  // namespace ulpscope
