// Asking the oracle about cases.
#include "harness/cli/reference_lint.h"

#include <fmt/format.h>

#include <set>

#include "harness/casefile/generate.h"
#include "harness/num/dtype.h"
#include "oracles/oracle.h"

namespace ulpscope {
namespace {

/// Values of such names are answers of an engine, and no tensors.
bool HasNoReferenceByNature(const std::string& name) {
  return name == "trace" || name == "peak_bytes" || name.ends_with("_dtype");
}

/// The oracle marks its own limits as such; any other reason is the program's fault.
bool IsLimitOfTheOracle(const std::string& why) { return why.find("oracle") != std::string::npos; }

}  // namespace

ReferenceLint LintReferences(const Case& test_case) {
  ReferenceLint lint;
  auto inputs = MakeInputs(test_case, 0);
  if (!inputs) return lint;
  const auto say = [&](std::vector<Error>* to, std::string message, std::string hint) {
    Error error = Problem(std::move(message), {}, {}, std::move(hint));
    error.pos = test_case.pos;
    to->push_back(std::move(error));
  };
  const auto oracle = OpenCaseOracle(test_case, std::move(*inputs));
  if (!oracle) {
    say(&lint.warnings, "the steps of the case do not go together: " + oracle.error().message, "");
    return lint;
  }
  std::set<std::string> told;
  for (const auto& name : test_case.observe) {
    if (HasNoReferenceByNature(name)) continue;
    const auto shape = (*oracle)->Describe(name);
    if (shape) continue;
    const std::string& why = shape.error().message;
    if (IsLimitOfTheOracle(why)) {
      say(&lint.notes, fmt::format("'{}' has no exact reference: {}", name, why),
          "backends are compared with each other, bit by bit");
    } else if (told.insert(why).second) {
      say(&lint.warnings, "the steps of the case do not go together: " + why,
          "every backend will refuse it, and nothing will be checked");
    }
  }
  return lint;
}

}  // namespace ulpscope
