// The attributes that each op of the vocabulary takes (backends/PROTOCOL.md), so that an adapter never
// computes a step while ignoring a part of it.
#pragma once

#include <string>
#include <vector>

#include "backends/sdk/program.h"

namespace ulpscope::sdk {

/// The attributes of `op`; null for aten:: ops, which have a schema of their own, and for words not listed
/// here.
const std::vector<std::string>* AttributesOf(const std::string& op);

/// "" or why `steps` hold an attribute that its op does not take.
std::string UnknownAttribute(const std::vector<Step>& steps);

}  // namespace ulpscope::sdk
