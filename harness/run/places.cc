// Finding the places of this installation.
#include "harness/run/places.h"

#include <cstdlib>

#include "harness/base/build_info.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

void Replace(std::string& text, std::string_view from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace

Places Places::Detect() {
  Places places;
  std::error_code error;
  places.bin = fs::read_symlink("/proc/self/exe", error).parent_path();
  const char* root = std::getenv("ULPSCOPE_ROOT");
  places.root =
      fs::absolute(root != nullptr && *root != '\0' ? fs::path(root) : fs::path(SourceDir()), error);
  const char* python = std::getenv("ULPSCOPE_PYTHON");
  // Absolute, but not resolved: a virtual environment's interpreter is a link, and finds its packages by its
  // own path.
  places.python = fs::absolute(
      python != nullptr && *python != '\0' ? fs::path(python) : places.root / ".venv/bin/python", error);
  return places;
}

std::string Places::Expand(std::string_view text) const {
  std::string expanded(text);
  Replace(expanded, "{bin}", bin.string());
  Replace(expanded, "{root}", root.string());
  Replace(expanded, "{python}", python.string());
  for (size_t begin = 0; (begin = expanded.find(kVenvPlace, begin)) != std::string::npos;) {
    const size_t end = expanded.find('}', begin);
    if (end == std::string::npos) break;
    const std::string name = expanded.substr(begin + kVenvPlace.size(), end - begin - kVenvPlace.size());
    expanded.replace(begin, end + 1 - begin, (root / (".venv-" + name) / "bin/python").string());
  }
  return expanded;
}

}  // namespace ulpscope
