// OpenBLAS: the core type is chosen when the library is loaded, by a variable that the harness sets.
#include <cblas.h>
#include <strings.h>

#include "backends/cblas/vendor.h"

namespace ulpscope::cblas {
namespace {

/// "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..." -> "0.3.21"
std::string Version() {
  const std::string config = openblas_get_config();
  const size_t begin = config.find(' ');
  if (begin == std::string::npos) return config;
  return config.substr(begin + 1, config.find(' ', begin + 1) - begin - 1);
}

}  // namespace

std::string VendorName() { return "openblas"; }

std::map<std::string, std::string> VendorVersions() {
  return {{"openblas", Version()}, {"corename", openblas_get_corename()}};
}

std::map<std::string, std::vector<std::string>> VendorKnobs() {
  return {{"openblas_coretype", {"detected", "Haswell", "SkylakeX", "Cooperlake", "Zen"}}};
}

std::string VendorSetUp(const std::map<std::string, std::string>&) { return {}; }

std::string VendorCheck(const std::string& knob, const std::string& value) {
  // OpenBLAS falls back in silence where it does not know the name, or where another core type stands for it.
  if (value == "detected" || strcasecmp(value.c_str(), openblas_get_corename()) == 0) return {};
  return "knob " + knob + "=" + value + ": OpenBLAS runs as " + openblas_get_corename();
}

std::string VendorReadBack(const std::string&) { return openblas_get_corename(); }

int VendorThreads() { return openblas_get_num_threads(); }
void VendorSetThreads(int count) { openblas_set_num_threads(count); }

}  // namespace ulpscope::cblas
