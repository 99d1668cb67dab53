// A program as PyTorch runs it, eagerly or in the regions that torch.compile takes.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "harness/base/text.h"
#include "harness/repro/compute.h"
#include "harness/repro/placed_step.h"
#include "harness/repro/python_text.h"
#include "harness/repro/torch_step.h"

namespace ulpscope {
namespace {

/// Steps as statements, neighbours in the same scopes under one head.
std::string TorchBlock(const std::vector<PlacedStep>& steps) {
  std::string text;
  std::vector<const Step*> open;
  const auto add = [&](const std::string& line) {
    text += std::string(4 * (open.size() + 1), ' ') + line + "\n";
  };
  for (const PlacedStep& placed : steps) {
    size_t same = 0;
    while (same < std::min(open.size(), placed.scopes.size()) && open[same] == placed.scopes[same]) ++same;
    open.resize(same);
    while (open.size() < placed.scopes.size()) {
      const Step* scope = placed.scopes[open.size()];
      add(TorchScope(*scope));
      open.push_back(scope);
    }
    add(TorchStatement(*placed.step));
  }
  return text;
}

std::string TorchInputs(const Case& test_case) {
  std::string text;
  for (const TensorSpec& spec : test_case.tensors) {
    const std::string name = PythonVariable(spec.name);
    text += fmt::format("    {} = given[{}]\n", name, PythonString(spec.name));
    if (!spec.strides.empty())
      text += fmt::format("    {} = torch.empty_strided({}.shape, [{}], dtype={}.dtype).copy_({})\n", name,
                          name, Join(spec.strides, ", "), name, name);
    if (spec.requires_grad) text += fmt::format("    {}.requires_grad_()\n", name);
  }
  return text;
}

std::vector<std::string> NamesUsed(const Step& step) {
  std::vector<std::string> names;
  for (const Operand& operand : step.of) {
    if (!operand.scalar) names.push_back(operand.name.substr(0, operand.name.find('.')));
  }
  if (!step.out.empty()) names.push_back(step.out);
  return names;
}

/// The values that a region takes from before it, and the results that are read after it.
struct Interface {
  std::vector<std::string> inputs, outputs;
};

Interface InterfaceOf(const std::vector<PlacedStep>& part, const std::vector<PlacedStep>& later,
                      const std::vector<std::string>& observed) {
  std::set<std::string> made, taken, wanted;
  Interface interface;
  for (const PlacedStep& placed : later) {
    for (const auto& name : NamesUsed(*placed.step)) wanted.insert(name);
  }
  for (const auto& name : observed) wanted.insert(name.substr(0, name.find('.')));
  for (const PlacedStep& placed : part) {
    for (const auto& name : NamesUsed(*placed.step)) {
      if (!made.contains(name) && taken.insert(name).second) interface.inputs.push_back(PythonVariable(name));
    }
    const std::string& as = placed.step->as;
    if (!as.empty() && made.insert(as).second && wanted.contains(as))
      interface.outputs.push_back(PythonVariable(as));
  }
  if (interface.outputs.empty() && !made.empty()) interface.outputs.push_back(PythonVariable(*made.begin()));
  return interface;
}

/// True for a step that torch.compile cannot take: it stands between the compiled regions, as in the backend.
bool IsOutside(const PlacedStep& placed) {
  return placed.step->op == "set_data" || placed.step->op == "detach_" || placed.step->op == "backward";
}

/// Whether the first step that uses the buffer `name` writes all of it: it is made inside the region then, as in the backend.
bool IsWrittenFirst(const std::string& name, const std::vector<PlacedStep>& steps) {
  for (const PlacedStep& placed : steps) {
    const Step& step = *placed.step;
    const bool reads = std::ranges::any_of(step.of, [&](const Operand& each) { return each.name == name; });
    if (reads || step.out == name) return !reads;
  }
  return false;
}

/// The functions of the regions, and the statements that call them.
struct Compiled {
  std::string functions = {}, body;
};

Compiled CompiledRegions(const std::vector<PlacedStep>& steps, const std::vector<std::string>& observed,
                         const std::string& compiler) {
  Compiled text;
  std::vector<PlacedStep> rest;
  std::map<std::string, const Step*> inside;  // made right before they are written
  for (const PlacedStep& placed : steps) {
    if (placed.step->op == "empty" && IsWrittenFirst(placed.step->as, steps)) {
      inside.emplace(placed.step->as, placed.step);
    } else if (placed.step->op == "empty") {
      text.body += TorchBlock({{.step = placed.step}});
    } else {
      if (const auto made = inside.extract(placed.step->out))
        rest.push_back({.step = made.mapped(), .scopes = placed.scopes});
      rest.push_back(placed);
    }
  }
  int count = 0;
  for (auto begin = rest.cbegin(); begin != rest.cend();) {
    const auto end = std::find_if(
        begin, rest.cend(), [&](const PlacedStep& placed) { return IsOutside(placed) != IsOutside(*begin); });
    const std::vector<PlacedStep> part(begin, end);
    begin = end;
    if (IsOutside(part.front())) {
      text.body += TorchBlock(part);
      continue;
    }
    const auto [inputs, outputs] = InterfaceOf(part, std::vector<PlacedStep>(end, rest.cend()), observed);
    ++count;
    text.functions += fmt::format("\n\ndef region_{}({}):\n{}    return {},\n", count, Join(inputs, ", "),
                                  TorchBlock(part), Join(outputs, ", "));
    text.body +=
        fmt::format("    {}, = torch.compile(region_{}, fullgraph=True, dynamic=False, backend=\"{}\")({})\n",
                    Join(outputs, ", "), count, compiler, Join(inputs, ", "));
  }
  return text;
}

constexpr std::string_view kResult =
    "\n\ndef result(given, number):\n"
    "    return given[number] if isinstance(given, (tuple, list)) else given\n";

}  // namespace

std::string TorchCompute(const Case& test_case, const std::string& compiler) {
  const std::vector<PlacedStep> placed = PlaceSteps(test_case.program);
  const bool needs_result =
      std::ranges::any_of(placed, [](const PlacedStep& each) { return TorchNeedsResult(*each.step); });
  const Compiled text = compiler.empty() ? Compiled{.body = TorchBlock(placed)}
                                         : CompiledRegions(placed, test_case.observe, compiler);
  return std::string(needs_result ? kResult : "") + text.functions + "\n\ndef compute(given):\n" +
         TorchInputs(test_case) + text.body + ReturnText(test_case);
}

}  // namespace ulpscope
