// Steps in a line, and their text.
#include "harness/repro/placed_step.h"

#include <algorithm>

#include "harness/base/text.h"
#include "harness/repro/python_text.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

void Place(const std::vector<Step>& steps, const std::vector<const Step*>& scopes,
           std::vector<PlacedStep>* placed) {
  for (const Step& step : steps) {
    if (IsScope(step.op)) {
      std::vector<const Step*> inner = scopes;
      inner.push_back(&step);
      Place(step.steps, inner, placed);
    } else if (step.op != "sync") {
      placed->push_back({.step = &step, .scopes = scopes});
    }
  }
}

}  // namespace

std::vector<PlacedStep> PlaceSteps(const std::vector<Step>& program) {
  std::vector<PlacedStep> placed;
  Place(program, {}, &placed);
  return placed;
}

std::string OperandText(const Operand& operand, std::string_view module) {
  return operand.scalar ? PythonLiteral(*operand.scalar, module) : PythonVariable(operand.name);
}

std::string ArgumentsText(const Step& step, std::string_view module, const std::set<std::string>& without) {
  std::vector<std::string> parts;
  for (const Operand& operand : step.of) parts.push_back(OperandText(operand, module));
  for (const auto& [key, value] : step.attrs) {
    if (!without.contains(key)) parts.push_back(key + "=" + PythonLiteral(value, module));
  }
  if (!step.out.empty()) parts.push_back("out=" + PythonVariable(step.out));
  return Join(parts, ", ");
}

bool IsValueName(std::string_view observed) {
  return observed.find('.') == observed.npos && observed != "trace" && observed != "peak_bytes";
}

std::string ReturnText(const Case& test_case) {
  std::vector<std::string> parts;
  for (const auto& name : test_case.observe) {
    if (IsValueName(name) || name.substr(std::min(name.find('.'), name.size())) == ".grad")
      parts.push_back(PythonString(name) + ": " + PythonVariable(name));
  }
  return "    return {" + Join(parts, ", ") + "}\n";
}

}  // namespace ulpscope
