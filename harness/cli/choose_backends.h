// Which backends a command line names: -b and --knob, against what is installed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/base/result.h"
#include "harness/run/backend.h"

namespace ulpscope {

struct BackendChoice {
  std::string list;  ///< -b: backend strings joined by commas, `all`, or empty for every installed default
  std::vector<std::string> knobs;  ///< --knob K=V
};

struct ChosenBackends {
  std::vector<BackendSpec> backends;
  /// Default and announced backends that are not there -> why, and the line that installs them; empty if
  /// backends were named.
  std::map<std::string, std::string> not_installed = {};
};

/// Whether `backend`, which a message calls `shown`, can be started.
Result<void> CheckInstalled(const BackendSpec& backend, const std::string& shown, const Registry& registry);

/// Why a backend is not there, and the line that installs it.
std::string WhyAbsent(const Availability& availability);

/// The columns of a run. Fails where a backend is unknown, or named and not installed, or where none takes a knob.
Result<ChosenBackends> ChooseBackends(const BackendChoice& choice, const Registry& registry);

}  // namespace ulpscope
