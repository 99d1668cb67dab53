// The version as the build defines it, for this file alone; the tree found from the executable's place.
#include "harness/base/build_info.h"

#include <filesystem>
#include <fstream>

#ifndef ULPSCOPE_VERSION
#error "the build names the version"
#endif

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

std::string FindTree() {
  std::error_code code;
  const fs::path executable = fs::read_symlink("/proc/self/exe", code);
  for (fs::path folder = executable.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    for (const fs::path& tree : {folder, folder / "share/ulpscope"}) {
      if (fs::is_regular_file(tree / "backends/registry.jsonl", code)) return tree.string();
    }
  }
  std::ifstream beside(executable.parent_path() / "ulpscope.root");
  std::string named;
  return std::getline(beside, named) && !named.empty() ? named : "/";
}

}  // namespace

std::string_view Version() { return ULPSCOPE_VERSION; }

const std::string& SourceDir() {
  static const std::string folder = FindTree();
  return folder;
}

}  // namespace ulpscope
