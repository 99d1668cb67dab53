// What the steps of a program show.
#include "harness/cli/judging/opened_record.h"

#include <utility>

#include "harness/base/find.h"
#include "harness/casefile/open.h"
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
  auto taken = ULPSCOPE_TRY(run.classifications().Take(opened_case->id, backend, classifier, observation));
  if (!taken.fault.empty()) *fault = "step by step: " + taken.fault;
  here.steps = std::move(taken.values);
  std::map<std::string, TensorData> asked;
  for (const auto& [name, tensor] : own.values) {
    if (here.steps.contains(name)) asked.emplace(name, tensor);
  }
  const auto changed = ChangedByOpening(asked, observation.values);
  here.told.changed.assign(changed.begin(), changed.end());
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
