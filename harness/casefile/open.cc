// Turns a case into its instrumented program.
#include "harness/casefile/open.h"

#include <algorithm>
#include <vector>

#include "harness/base/find.h"
#include "harness/words/aten.h"
#include "harness/words/ops.h"
#include "harness/words/program.h"

namespace ulpscope {
namespace {

constexpr const char* kSuffix = "~opened";

/// Tensors of a case whose data a program may replace.
struct Replaceable {
  const Case& in;
  std::set<std::string> by_steps = {};  ///< those that hold a step's result
};

/// Whether a step replaces the data of a tensor of the case in a way that the judge can repeat: a cast between floating-point dtypes
/// of data that is known before the program runs, or the data of another name.
bool ReplacesTensor(const Step& step, Replaceable* replaceable) {
  const Case& c = replaceable->in;
  if (step.op != "set_data" && step.op != "module_to") return false;
  const TensorSpec* tensor = step.of.size() == 1 ? c.FindTensor(step.of[0].name) : nullptr;
  if (tensor == nullptr || !IsFloating(tensor->dtype) || replaceable->by_steps.contains(tensor->name))
    return false;
  if (step.op == "module_to") {
    const auto dtype = ReadDType(step, "dtype");
    return dtype && IsFloating(*dtype);
  }
  const auto to = ReadSetDataTo(step);
  const DType* dtype = to ? std::get_if<DType>(&*to) : nullptr;
  if (!to || (dtype != nullptr && !IsFloating(*dtype))) return false;
  const auto* value = std::get_if<std::string>(&*to);
  if (value != nullptr && c.FindTensor(*value) == nullptr) replaceable->by_steps.insert(tensor->name);
  return true;
}

/// The names that the steps make, in program order; false if a step does more than name a new value, or replace the
/// data of a tensor that is `replaceable` (null: none is).
bool NamesMade(const std::vector<Step>& steps, Replaceable* replaceable, std::vector<std::string>* names) {
  for (const Step& step : steps) {
    if (IsScope(step.op)) {
      if (!NamesMade(step.steps, replaceable, names)) return false;
      continue;
    }
    if (step.op == "sync" || step.op == "backward") continue;
    if (replaceable != nullptr && (step.op == "detach_" || ReplacesTensor(step, replaceable))) continue;
    const OpRow* op = FindOp(step.op);
    const bool value = op == nullptr ? GivesNewValue(step.op) : op->GivesValue() && step.op != "empty";
    if (!value || !step.out.empty() || step.as.empty()) return false;
    if (Contains(*names, step.as)) return false;
    names->push_back(step.as);
  }
  return true;
}

bool HoldsBackward(const std::vector<Step>& steps) {
  return std::ranges::any_of(
      steps, [](const Step& step) { return step.op == "backward" || HoldsBackward(step.steps); });
}

/// Whether `meets(value, demand)` is true of a demand of the contract or of an expectation; stops at the
/// first.
template <class Meets>
bool AnyDemand(const Case& c, Meets meets) {
  const auto any = [&](const std::map<std::string, ValueDemand>& values) {
    return std::ranges::any_of(values, [&](const auto& value) { return meets(value.first, value.second); });
  };
  if (any(c.contract.values)) return true;
  return std::ranges::any_of(c.expect, [&](const auto& backend) {
    return std::ranges::any_of(backend.second, [&](const Expectation& entry) { return any(entry.values); });
  });
}

}  // namespace

bool CanBeOpened(const Case& c) {
  std::vector<std::string> names;
  Replaceable replaceable{.in = c};
  return c.companion_of.empty() && NamesMade(c.program, &replaceable, &names) && names.size() > 1 &&
         std::ranges::none_of(names, [&](const std::string& name) { return c.FindTensor(name) != nullptr; });
}

std::optional<Case> Opened(const Case& c) {
  if (!CanBeOpened(c)) return std::nullopt;
  std::vector<std::string> names;
  Replaceable replaceable{.in = c};
  NamesMade(c.program, &replaceable, &names);
  Case opened = c;
  opened.id = c.id + kSuffix;
  opened.companion_of = c.id;
  opened.contract = {};
  opened.expect.clear();
  std::erase_if(opened.observe,
                [&](const std::string& name) { return name != "trace" && !Contains(names, name); });
  for (const std::string& name : names) {
    if (!Contains(opened.observe, name)) opened.observe.push_back(name);
  }
  return opened;
}

bool IsOneStep(const Case& c) {
  std::vector<std::string> names;
  return c.companion_of.empty() && !Differentiates(c) && NamesMade(c.program, nullptr, &names) &&
         names.size() == 1;
}

bool Differentiates(const Case& c) { return HoldsBackward(c.program); }

bool IsOpened(const Case& c) { return !c.companion_of.empty() && c.id == c.companion_of + kSuffix; }

std::set<std::string> DemandedValues(const Case& c) {
  std::set<std::string> names;
  AnyDemand(c, [&](const std::string& name, const ValueDemand&) {
    names.insert(name);
    return false;
  });
  return names;
}

bool SpeaksOfFacets(const Case& c) {
  return AnyDemand(c, [](const std::string&, const ValueDemand& demand) { return !demand.facets.empty(); });
}

}  // namespace ulpscope
