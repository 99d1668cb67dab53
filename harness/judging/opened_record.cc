// Finds the evidence that the steps of a program give.
#include "harness/judging/opened_record.h"

#include <fmt/format.h>

#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/open.h"
#include "harness/hybrid/hybrid_runs.h"
#include "harness/judge/combine.h"
#include "harness/judge/local.h"
#include "harness/judge/step_contract.h"

namespace ulpscope {
namespace {

void TellSteps(const std::vector<Step>& steps, const OpenedRecord& here,
               std::vector<OpenedRun::StepResult>* told) {
  for (const Step& step : steps) {
    TellSteps(step.steps, here, told);
    const auto classification = here.steps.find(step.as);
    if (step.as.empty() || classification == here.steps.end()) continue;
    const TensorData& tensor = here.record.observation.values.at(step.as);
    ValueResult value{
        .dtype = tensor.dtype,
        .shape = tensor.shape,
    };
    value.classification = classification->second;
    told->push_back({.value = step.as, .op = step.op, .result = std::move(value)});
  }
}

/// Whether the run has the values of the requested program that this backend stores anyway. They are evidence about
/// that program; the steps of an instrumented program that differs from it are not.
Result<bool> IsBookedAtStored(const RunToJudge& run, const std::string& id, const std::string& backend) {
  const auto found = ULPSCOPE_TRY(run.FindHybrids(id, backend));
  return found && !WalkOf(*found).stored.empty();
}

}  // namespace

bool OpenedRecord::Keeps(const std::string& value) const { return !Contains(told.changed, value); }

Result<std::optional<OpenedRecord>> FindOpened(const RunToJudge& run, const std::optional<Case>& opened_case,
                                               const std::string& backend, const Observation& own,
                                               CaseClassifier* classifier, std::string* fault) {
  std::optional<OpenedRecord> none;
  if (!opened_case || own.outcome.kind != OutcomeKind::kCompleted) return none;
  auto found = ULPSCOPE_TRY(run.FindRelated(*opened_case, backend));
  if (!found) return none;
  OpenedRecord here{
      .record = *std::move(found),
  };
  const Observation& observation = here.record.observation;
  here.told.left_out = WhyItProvesNothing(observation, FindTaint(observation));
  if (!here.Says()) return std::optional(std::move(here));
  std::map<std::string, TensorData> asked;
  for (const auto& [name, tensor] : own.values) {
    if (Contains(opened_case->observe, name)) asked.emplace(name, tensor);
  }
  const auto changed = ChangedByOpening(asked, observation.values);
  here.told.changed.assign(changed.begin(), changed.end());
  if (!changed.empty() && ULPSCOPE_TRY(IsBookedAtStored(run, opened_case->companion_of, backend))) {
    here.told.left_out = fmt::format(
        "computes other bits for {}; the ledger books the differences at values that it stores anyway",
        Join(here.told.changed, ", "));
    return std::optional(std::move(here));
  }
  auto taken = ULPSCOPE_TRY(run.classifications().Take(opened_case->id, backend, classifier, observation));
  classifier->NameForms(observation, &taken);
  if (!taken.fault.empty()) *fault = "step by step: " + taken.fault;
  here.steps = std::move(taken.values);
  TellSteps(opened_case->program, here, &here.told.steps);
  return std::optional(std::move(here));
}

void JudgeBySteps(const Case& test_case, const std::optional<OpenedRecord>& opened,
                  const std::optional<Case>& opened_case, Classified* classified) {
  if (!opened || !opened->Says()) return;
  for (auto& [name, found] : classified->values) {
    if (found.kind != ClassificationKind::kNotJudged || !opened->Keeps(name)) continue;
    auto stand_in =
        StandInFromSteps(*opened_case, name, LookupOr(test_case.contract.values, name), opened->steps);
    if (!stand_in) continue;
    stand_in->elements = found.elements;
    stand_in->checked = found.checked;
    stand_in->max_ulp = found.max_ulp;
    stand_in->max_abs = found.max_abs;
    found = std::move(*stand_in);
  }
}

}  // namespace ulpscope
