// Settings of the caller's own environment that would have changed the numbers.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "harness/run/registry.h"

namespace ulpscope {

/// Variables that would change numerics, as the caller has set them: those that the registry names (absent =
/// nullopt), and every other one with a prefix of its. Variables that are known to change numbers are
/// recorded with their values, without secrets; the others are recorded as set. None of them reaches a
/// worker.
std::map<std::string, std::optional<std::string>> PresetEnvironment(const Registry& registry);

}  // namespace ulpscope
