// Refuses attributes that an op does not take, so that an adapter never computes a step while ignoring a part
// of it.
#pragma once

#include <string>
#include <vector>

#include "backends/sdk/program.h"

namespace ulpscope::sdk {

/// "" or why `steps` hold an attribute that its op does not take (aten:: ops have a schema of their own).
std::string UnknownAttribute(const std::vector<Step>& steps);

}  // namespace ulpscope::sdk
