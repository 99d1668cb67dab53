// Folder of the programs under test: that of the test's own executable.
#pragma once

#include <filesystem>
#include <string>

namespace ulpscope::testing {

inline std::string BinDir() { return std::filesystem::read_symlink("/proc/self/exe").parent_path().string(); }

}  // namespace ulpscope::testing
