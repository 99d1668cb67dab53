// The steps of a program in one line, and what a script writes of each in whatever framework.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/case.h"
#include "harness/words/program.h"

namespace ulpscope {

/// A step that is no scope, and the scopes that it stands in, outermost first. Both point into the program.
struct PlacedStep {
  const Step* step;
  std::vector<const Step*> scopes = {};
};

/// In the order in which they are done. `sync` is left out: a script waits for every value.
std::vector<PlacedStep> PlaceSteps(const std::vector<Step>& program);

/// An operand as an expression; `module` as PythonLiteral takes it.
std::string OperandText(const Operand& operand, std::string_view module);

/// Text between the brackets of a call: operands, attributes by name except those in `without`, and out=.
std::string ArgumentsText(const Step& step, std::string_view module,
                          const std::set<std::string>& without = {});

/// Whether what a case observes is a value itself, neither a gradient nor a property of one, nor a trace.
bool IsValueName(std::string_view observed);

/// The line that returns, by their names, those values of the case that a script can observe.
std::string ReturnText(const Case& test_case);

}  // namespace ulpscope
