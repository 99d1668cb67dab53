// The Python environment that a backend string names, and the string without it: torch-inductor:env=torch-2.15.0.
#pragma once

#include <string>
#include <string_view>

namespace ulpscope {

/// The name of columns without `env` where an environment has to be named.
inline constexpr std::string_view kNoEnvironment = "default";

struct EnvironmentName {
  std::string environment;   ///< kNoEnvironment where the string names none
  std::string backend = {};  ///< canonical, without `env`
};

EnvironmentName SplitEnvironment(std::string_view backend);

}  // namespace ulpscope
