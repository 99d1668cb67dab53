// The environment of a worker: a whitelist, so that nothing the caller has set changes its numbers.
//
// A preset OPENBLAS_CORETYPE silently selects other kernels and other bits. Variables that the numbers are
// allowed to depend on are set by knobs and recorded; all others are left out.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/run/places.h"

namespace ulpscope {

/// "NAME=value" entries for a worker. `scratch` is its TMPDIR; `token` marks every process that it starts.
std::vector<std::string> WorkerEnvironment(const std::map<std::string, std::string>& knobs,
                                           const Places& places, const std::filesystem::path& scratch,
                                           const std::string& token);

/// The variable that marks a worker and whatever it starts.
inline constexpr const char* kTokenVariable = "ULPSCOPE_WORKER";

}  // namespace ulpscope
