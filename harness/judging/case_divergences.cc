// Comparing the backends of one case.
#include "harness/judging/case_divergences.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "harness/base/find.h"
#include "harness/casefile/open.h"
#include "harness/judge/divergence.h"
#include "harness/judge/sentence.h"
#include "harness/model/tensor_diff.h"

namespace ulpscope {
namespace {

bool IsAnyJudgedAsOne(const std::set<std::string>& names, const CaseResult& result) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    const auto value = result.values.find(name);
    if (value == result.values.end()) return false;
    const Classification& found = value->second.classification;
    return found.kind != ClassificationKind::kNotJudged && !found.piece.starts_with("steps ");
  });
}

const TensorData* FindValueOf(const Observation& observation, const std::string& name) {
  return Lookup(observation.values, name);
}

/// The single steps at which the backends of `stepwise` differ. Others take part if none of them completed.
std::vector<Divergence> StepDivergences(const Case& test_case, const std::vector<Participant>& participants,
                                        const std::vector<std::optional<OpenedRecord>>& opened,
                                        const std::set<std::string>& stepwise) {
  const bool all = std::ranges::all_of(participants, [&](const Participant& each) {
    return each.result->outcome.kind != OutcomeKind::kCompleted || stepwise.contains(each.result->backend);
  });
  std::vector<CaseResult> results;
  std::vector<Observation> observations;
  std::set<std::string> observed;
  results.reserve(participants.size());
  observations.reserve(participants.size());
  std::vector<Participant> shown;
  for (size_t i = 0; i < participants.size(); ++i) {
    if (!all && !stepwise.contains(participants[i].result->backend)) continue;
    observed.insert(participants[i].result->value_order.begin(), participants[i].result->value_order.end());
    results.push_back(*participants[i].result);
    observations.push_back(*participants[i].observation);
    if (opened[i]) {
      CaseResult& result = results.back();
      // Gradients are not values of steps: they are compared in the requested program.
      const CaseResult& asked = *participants[i].result;
      result.values.clear();
      result.value_order.clear();
      observations.back().values = opened[i]->record.observation.values;
      for (const auto& step : opened[i]->told.steps) {
        result.value_order.push_back(step.value);
        result.values[step.value] = step.result;
      }
      for (const auto& name : asked.value_order) {
        const auto value = participants[i].observation->values.find(name);
        if (result.values.contains(name) || value == participants[i].observation->values.end()) continue;
        result.value_order.push_back(name);
        result.values[name] = asked.values.at(name);
        observations.back().values.insert_or_assign(name, value->second);
      }
    }
    shown.push_back({.result = &results.back(), .observation = &observations.back()});
  }
  return FindDivergences(test_case, shown, JudgedAs::kStepByStep, {}, observed);
}

/// The backends of the divergence whose value changes if the steps are observed.
std::vector<ObservedChange> ChangedIn(const Divergence& divergence,
                                      const std::vector<Participant>& participants,
                                      const std::vector<std::optional<OpenedRecord>>& opened,
                                      const std::map<std::string, std::vector<std::string>>& changed) {
  std::vector<ObservedChange> who;
  for (size_t i = 0; i < participants.size(); ++i) {
    const std::string& backend = participants[i].result->backend;
    const auto values = changed.find(backend);
    if (values == changed.end() || !Contains(values->second, divergence.value)) continue;
    const bool left = Contains(divergence.backends[0], backend);
    if (!left && !Contains(divergence.backends[1], backend)) continue;
    const TensorData *asked = FindValueOf(*participants[i].observation, divergence.value),
                     *observed = FindValueOf(opened[i]->record.observation, divergence.value);
    if (asked == nullptr || observed == nullptr || asked->shape != observed->shape ||
        asked->dtype != observed->dtype)
      continue;
    ObservedChange change{.backend = backend, .of = CompareTensors(*asked, *observed), .same_as = {}};
    for (const Participant& other : participants) {
      if (!Contains(divergence.backends[left ? 1 : 0], other.result->backend)) continue;
      const TensorData* theirs = FindValueOf(*other.observation, divergence.value);
      if (theirs != nullptr && theirs->shape == observed->shape && theirs->dtype == observed->dtype &&
          CompareTensors(*theirs, *observed).Same())
        change.same_as.push_back(other.result->backend);
    }
    who.push_back(std::move(change));
  }
  return who;
}

/// The backends whose steps are known and are evidence about the requested program.
std::set<std::string> Stepwise(const Case& test_case, const std::vector<Participant>& participants,
                               const std::vector<std::optional<OpenedRecord>>& opened) {
  const std::set<std::string> demanded = DemandedValues(test_case);
  std::set<std::string> stepwise;
  for (size_t i = 0; i < opened.size(); ++i) {
    const CaseResult& result = *participants[i].result;
    if (result.outcome.kind == OutcomeKind::kCompleted && opened[i] && opened[i]->Says() &&
        opened[i]->told.changed.empty() && !IsAnyJudgedAsOne(demanded, result))
      stepwise.insert(result.backend);
  }
  return stepwise;
}

/// The ledger of the divergence's value and sides, if its entries are all of steps and not all of the value's own step.
const Ledger* BookedLedger(std::span<const Ledger> ledgers, const Divergence& divergence) {
  const auto found = std::ranges::find_if(ledgers, [&](const Ledger& each) {
    const auto is_of = [&](std::string_view step) {
      return [step](const LedgerEntry& entry) { return entry.step == step; };
    };
    return each.value == divergence.value && each.backends == divergence.backends && each.left_out.empty() &&
           !each.carrier.empty() && std::ranges::none_of(each.entries, is_of("")) &&
           !std::ranges::all_of(each.entries, is_of(each.value));
  });
  return found == ledgers.end() ? nullptr : &*found;
}

}  // namespace

std::vector<Divergence> FindCaseDivergences(const Case& test_case,
                                            const std::vector<Participant>& participants,
                                            const std::vector<std::optional<OpenedRecord>>& opened,
                                            const std::optional<Case>& opened_case) {
  std::vector<Divergence> divergences;
  // These backends are compared step by step; the others, and these with them, in the requested values.
  const std::set<std::string> stepwise =
      opened_case ? Stepwise(test_case, participants, opened) : std::set<std::string>();
  const auto completed = static_cast<size_t>(std::ranges::count_if(participants, [](const Participant& each) {
    return each.result->outcome.kind == OutcomeKind::kCompleted;
  }));
  if (stepwise.size() > 1 || (stepwise.size() == completed && opened_case))
    divergences = StepDivergences(test_case, participants, opened, stepwise);
  if (stepwise.size() < completed || stepwise.empty()) {
    for (auto& each : FindDivergences(test_case, participants, JudgedAs::kWholeProgram, stepwise))
      divergences.push_back(std::move(each));
  }
  return divergences;
}

void TellObservedSteps(const Case& test_case, const std::vector<Participant>& participants,
                       const std::vector<std::optional<OpenedRecord>>& opened,
                       std::span<const Ledger> ledgers, std::vector<Divergence>* divergences) {
  std::map<std::string, std::vector<std::string>> changed;
  std::set<std::string> seen;
  for (size_t i = 0; i < opened.size(); ++i) {
    if (participants[i].result->outcome.kind != OutcomeKind::kCompleted || !opened[i] || !opened[i]->Says())
      continue;
    seen.insert(participants[i].result->backend);
    if (!opened[i]->told.changed.empty()) changed[participants[i].result->backend] = opened[i]->told.changed;
  }
  std::optional<std::vector<Divergence>> steps;
  for (Divergence& each : *divergences) {
    if (each.kind != DivergenceKind::kValue || each.backends.size() != 2) continue;
    if (const Ledger* ledger = BookedLedger(ledgers, each)) {
      each.sentence +=
          fmt::format(" {} of {} steps differ, and explain all of it.", ledger->StepsBooked(), ledger->steps);
      each.has_cause = true;
      continue;
    }
    std::vector<ObservedChange> who;
    if (!changed.empty() && seen.size() > 1) who = ChangedIn(each, participants, opened, changed);
    if (who.empty()) {
      if (!each.has_cause) each.sentence += " No cause was found.";
      continue;
    }
    if (!steps && !each.has_cause) steps = StepDivergences(test_case, participants, opened, seen);
    each.sentence += ObservedStepsSentence(each, who, each.has_cause ? nullptr : &*steps);
  }
}

}  // namespace ulpscope
