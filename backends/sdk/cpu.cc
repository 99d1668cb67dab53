// Reading /proc/cpuinfo.
#include "backends/sdk/cpu.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

namespace ulpscope::sdk {
namespace {

std::set<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::set<std::string> Flags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("flags")) return Words(line.substr(line.find(':') + 1));
  }
  return {};
}

}  // namespace

std::string LackingCpuFeatures(std::string_view features) {
  const std::set<std::string> flags = Flags();
  const char* mask = std::getenv("ULPSCOPE_CPU_WITHOUT");
  const std::set<std::string> without = Words(mask == nullptr ? "" : mask);
  std::string lacking;
  for (const std::string& feature : Words(std::string(features))) {
    if (!without.contains(feature) && (flags.empty() || flags.contains(feature))) continue;
    lacking += (lacking.empty() ? "" : " ") + feature;
  }
  return lacking;
}

}  // namespace ulpscope::sdk
