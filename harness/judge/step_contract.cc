// Chooses the step that meets a demand least.
#include "harness/judge/step_contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "harness/judge/contract.h"

namespace ulpscope {
namespace {

using StepsByValue = std::map<std::string, const Step*>;

void NoteSteps(const std::vector<Step>& steps, StepsByValue* by_value) {
  for (const Step& step : steps) {
    NoteSteps(step.steps, by_value);
    if (!step.as.empty()) (*by_value)[step.as] = &step;
  }
}

/// Operands before their readers, `value` last.
void AddPath(const StepsByValue& by_value, const std::string& value, std::set<std::string>* seen,
             std::vector<const Step*>* path) {
  const auto made = by_value.find(value);
  if (made == by_value.end() || !seen->insert(value).second) return;
  for (const Operand& operand : made->second->of) {
    if (!operand.IsScalar()) AddPath(by_value, operand.name, seen, path);
  }
  path->push_back(made->second);
}

/// True if the step was judged against all candidate models, on operands as stored. A step explained otherwise (read
/// before its rounding, in another format, as two ops) was compared with few models: no exclusion, no confirmation.
bool IsJudgedInFull(const std::string& value, const Classification& step) {
  return !step.cuts.contains(value + ".product") && std::ranges::all_of(step.reads, [](const auto& read) {
    return read.second == std::vector<std::string>{"stored"};
  });
}

int Concern(ContractVerdict verdict) {
  switch (verdict) {
    case ContractVerdict::kViolates:
      return 3;
    case ContractVerdict::kUnmodelled:
      return 2;
    case ContractVerdict::kUndetermined:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

std::optional<Classification> StandInFromSteps(const Case& opened, const std::string& value,
                                               const ValueDemand& demand,
                                               const std::map<std::string, Classification>& steps) {
  static const std::set<std::string> kOfEachStep{"acc", "prod", "mid", "in"};
  for (const auto& [facet, words] : demand.facets) {
    if (!kOfEachStep.contains(facet)) return std::nullopt;
  }
  StepsByValue by_value;
  NoteSteps(opened.program, &by_value);
  std::set<std::string> seen;
  std::vector<const Step*> path;
  AddPath(by_value, value, &seen, &path);
  const Step* worst = nullptr;
  int concern = -1;
  bool open = false;
  for (const Step* step : path) {
    const auto found = steps.find(step->as);
    if (found == steps.end() || found->second.kind == ClassificationKind::kNoReference ||
        IsWrong(found->second.kind))
      return std::nullopt;
    if (found->second.kind == ClassificationKind::kNotFloating) continue;
    if (!IsJudgedInFull(step->as, found->second)) {
      open = true;
      continue;
    }
    const int here = Concern(JudgeFacets(demand, found->second));
    if (here < concern) continue;
    concern = here;
    worst = step;
  }
  // If some step is open, only a violation is conclusive.
  if (worst == nullptr || (open && concern < Concern(ContractVerdict::kViolates))) return std::nullopt;
  Classification stand_in = steps.at(worst->as);
  stand_in.piece = "steps " + worst->as;
  stand_in.label = worst->as == value ? fmt::format("step by step: {}", stand_in.label)
                                      : fmt::format("step by step; its step {} ({}): {}", worst->as,
                                                    worst->op, stand_in.label);
  return stand_in;
}

}  // namespace ulpscope
