// Flattening.
#include "harness/model/flat_program.h"

#include <utility>

#include "harness/words/ops.h"

namespace ulpscope {

FlatProgram::FlatProgram(const std::vector<Step>& program) {
  Flatten(program, {});
  for (size_t i = 0; i < steps.size(); ++i) made_by[steps[i].step.as] = i;
}

void FlatProgram::Flatten(const std::vector<Step>& program, const std::vector<Step>& scopes) {
  for (const Step& step : program) {
    if (IsScope(step.op)) {
      Step scope = step;
      scope.steps.clear();
      auto inner = scopes;
      inner.push_back(std::move(scope));
      Flatten(step.steps, inner);
    } else if (!step.as.empty()) {
      steps.push_back({.step = step, .scopes = scopes});
    }
  }
}

bool IsArrangement(const Step& step) {
  const OpRow* op = FindOp(step.op);
  return step.op == "clone" || (op != nullptr && op->kind == OpRow::Kind::kView);
}

std::optional<size_t> FlatProgram::ComputedBy(const std::string& name,
                                              const std::set<size_t>& seen_through) const {
  const auto made = made_by.find(name);
  if (made == made_by.end()) return std::nullopt;
  const Step& step = steps[made->second].step;
  if (!IsArrangement(made->second) && !seen_through.contains(made->second)) return made->second;
  return step.of.empty() ? std::nullopt : ComputedBy(step.of.front().name, seen_through);
}

const Step* FindStep(const std::vector<Step>& steps, const std::string& value) {
  for (const Step& step : steps) {
    if (step.as == value) return &step;
    if (const Step* inner = FindStep(step.steps, value)) return inner;
  }
  return nullptr;
}

Step Inside(const std::vector<Step>& scopes, Step step) {
  for (size_t scope = scopes.size(); scope-- > 0;) {
    Step around = scopes[scope];
    around.steps = {std::move(step)};
    step = std::move(around);
  }
  return step;
}

}  // namespace ulpscope
