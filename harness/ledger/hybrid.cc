// Programs with values in the place of steps.
#include "harness/ledger/hybrid.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "harness/words/ops.h"
#include "harness/words/program.h"

namespace ulpscope {
namespace {

bool IsView(const Step& step) {
  const OpRow* op = FindOp(step.op);
  return op != nullptr && op->kind == OpRow::Kind::kView;
}

/// In reverse program order, so that `pick` knows the operands of later steps. Empty scopes are removed.
std::vector<Step> Picked(const std::vector<Step>& steps, const std::function<bool(const Step&)>& pick) {
  std::vector<Step> left;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (!IsScope(step->op)) {
      if (pick(*step)) left.push_back(*step);
      continue;
    }
    Step scope = *step;
    scope.steps = Picked(step->steps, pick);
    if (!scope.steps.empty()) left.push_back(std::move(scope));
  }
  std::ranges::reverse(left);
  return left;
}

/// Tensors that nothing reads go, and `given` ones that something reads come.
GivenProgram Complete(Case program, const NamedTensors& inputs, const NamedTensors& given) {
  const std::set<std::string> read = NamesOf(program.program).read;
  const auto is_needed = [&](const std::string& name) {
    return read.contains(name) || std::ranges::find(program.observe, name) != program.observe.end();
  };
  GivenProgram result;
  std::erase_if(program.tensors, [&](const TensorSpec& spec) { return !is_needed(spec.name); });
  for (const TensorSpec& spec : program.tensors) {
    const auto input = inputs.find(spec.name);
    if (input != inputs.end()) result.inputs.insert(*input);
  }
  for (const auto& [name, tensor] : given) {
    if (!is_needed(name)) continue;
    program.tensors.push_back(
        {.name = name, .dtype = tensor.dtype, .shape = tensor.shape, .fill = {"zeros"}});
    result.inputs.emplace(name, tensor);
  }
  result.program = std::move(program);
  return result;
}

Case Emptied(const Case& opened, const char* suffix) {
  Case c = opened;
  c.id = opened.companion_of + suffix;
  c.observe.clear();
  return c;
}

void AppendComputed(const std::vector<Step>& steps, std::vector<std::string>* names) {
  for (const Step& step : steps) {
    AppendComputed(step.steps, names);
    if (!step.as.empty() && !IsScope(step.op) && !IsView(step)) names->push_back(step.as);
  }
}

bool IsOfALibrary(const Step& step) {
  const OpRow* op = FindOp(step.op);
  return (op != nullptr && op->kind == OpRow::Kind::kProduct) || step.op == "scaled_dot_product_attention";
}

/// Collects the views, by name, and the operands of library calls.
void NoteReads(const std::vector<Step>& steps, std::map<std::string, std::string>* views,
               std::set<std::string>* read) {
  for (const Step& step : steps) {
    NoteReads(step.steps, views, read);
    if (IsView(step) && !step.of.empty()) (*views)[step.as] = step.of.front().name;
    if (!IsOfALibrary(step)) continue;
    for (const Operand& operand : step.of) read->insert(operand.name);
  }
}

void RenameComputed(const NamedTensors& values, std::vector<Step>* steps) {
  for (Step& step : *steps) {
    RenameComputed(values, &step.steps);
    if (!step.as.empty() && !IsView(step) && values.contains(step.as)) step.as = Again(step.as);
  }
}

}  // namespace

std::vector<std::string> ComputedValues(const Case& opened) {
  std::vector<std::string> names;
  AppendComputed(opened.program, &names);
  return names;
}

std::set<std::string> ReadByLibraries(const Case& opened) {
  std::map<std::string, std::string> views;
  std::set<std::string> read, found;
  NoteReads(opened.program, &views, &read);
  const std::vector<std::string> computed = ComputedValues(opened);
  for (std::string name : read) {
    for (auto view = views.find(name); view != views.end(); view = views.find(name)) name = view->second;
    if (std::ranges::find(computed, name) != computed.end()) found.insert(name);
  }
  return found;
}

std::string Again(const std::string& value) { return value + "_again"; }

GivenProgram WithGiven(const Case& opened, const NamedTensors& inputs, const NamedTensors& given,
                       const std::set<std::string>& observe) {
  Case program = Emptied(opened, "~hybrid");
  program.observe.assign(observe.begin(), observe.end());
  std::set<std::string> needed = observe;
  program.program = Picked(opened.program, [&](const Step& step) {
    const bool is_given = !step.as.empty() && !IsView(step) && given.contains(step.as);
    if (is_given || (!step.as.empty() && !needed.contains(step.as))) return false;
    needed.merge(NamesOf({step}).read);
    return true;
  });
  return Complete(std::move(program), inputs, given);
}

GivenProgram StepByStep(const Case& opened, const NamedTensors& inputs, const NamedTensors& values) {
  Case program = Emptied(opened, "~steps");
  NamedTensors given;
  for (const std::string& name : ComputedValues(opened)) {
    const auto value = values.find(name);
    if (value == values.end()) continue;
    given.insert(*value);
    program.observe.push_back(Again(name));
  }
  RenameComputed(given, &program.program);
  return Complete(std::move(program), inputs, given);
}

}  // namespace ulpscope
