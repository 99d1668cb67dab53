// Which modules a Python interpreter would find, without importing them.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "harness/base/result.h"

namespace ulpscope {

/// Module -> version, for those of `modules` that `python` finds. Fails when the interpreter does not run.
Result<std::map<std::string, std::string>> FindPythonModules(const std::filesystem::path& python,
                                                             const std::set<std::string>& modules);

}  // namespace ulpscope
