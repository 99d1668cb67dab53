// Names of a plan's nodes for its users.
#pragma once

#include <map>
#include <string>

#include "oracles/plan.h"

namespace ulpscope {

/// Two numbers of two steps are converted independently: up to the number of them that can be tried, each also gets the
/// name of the value that reads it ("scalar.mul@half").
void TellScalarsApart(Plan* plan);

/// Steps inside of ops, by name; the first of each name.
std::map<std::string, int> InsideOf(const Plan& plan);

}  // namespace ulpscope
