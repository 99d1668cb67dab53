// Checks backend strings against the registry: names and knobs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/base/result.h"
#include "harness/run/registry.h"
#include "harness/words/backend_name.h"

namespace ulpscope {

/// A backend of the registry, its knobs among those that it takes. Unknown names and knobs fail with the
/// nearest one.
Result<BackendSpec> ParseBackend(std::string_view text, const Registry& registry);

/// Parses the argument of -b: backend strings joined by commas. `knob=value` parts continue the backend
/// before them: "torch-eager,faulty:fault=hang,case=x,openblas" is three backends. "all" and "" are not
/// handled here.
Result<std::vector<BackendSpec>> ParseBackendList(std::string_view text, const Registry& registry);

/// Every installed backend that a run without -b takes.
std::vector<BackendSpec> DefaultBackends(const Registry& registry);
/// `-b all`: every backend that is not hidden, installed or not.
std::vector<BackendSpec> AllBackends(const Registry& registry);

}  // namespace ulpscope
