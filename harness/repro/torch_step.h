// One step of a program in PyTorch's own words.
#pragma once

#include <string>

#include "harness/words/program.h"

namespace ulpscope {

/// The statement of a step that is no scope. It may use the modules torch and F (torch.nn.functional), and where
/// TorchNeedsResult holds the function result(given, number): what a call gave, or the one of several that it gave.
std::string TorchStatement(const Step& step);
bool TorchNeedsResult(const Step& step);

/// The head of the `with` that stands for a scope.
std::string TorchScope(const Step& scope);

}  // namespace ulpscope
