// Names that a plan's nodes have for whoever asks about them.
#pragma once

#include <map>
#include <string>

#include "oracles/plan.h"

namespace ulpscope {

/// Two numbers of two steps are converted each in its own way: of as many as can be tried, each gets the name of the value that
/// reads it besides ("scalar.mul@half").
void TellScalarsApart(Plan* plan);

/// Steps inside of ops, by name; the first of each name.
std::map<std::string, int> InsideOf(const Plan& plan);

}  // namespace ulpscope
