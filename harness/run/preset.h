// What the caller's own environment would have changed of the numbers.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "harness/run/registry.h"

namespace ulpscope {

/// Variables that would change numerics, as the caller has set them: those that the registry names (absent =
/// nullopt), and every other one with a prefix of its. None of them reaches a worker.
std::map<std::string, std::optional<std::string>> PresetEnvironment(const Registry& registry);

}  // namespace ulpscope
