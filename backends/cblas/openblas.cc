// OpenBLAS: the core type is chosen when the library is loaded, by a variable. So the adapter looks at the
// hello before it serves, and starts itself again with the variable set, if the processor can run the
// requested kernels: OpenBLAS itself does not check, and ends in SIGILL.
#include <cblas.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "backends/cblas/vendor.h"
#include "backends/sdk/cpu.h"
#include "backends/sdk/wire.h"

namespace ulpscope::cblas {
namespace {

constexpr const char* kCoreKnob = "openblas_coretype";
constexpr const char* kCoreVariable = "OPENBLAS_CORETYPE";

struct CoreType {
  const char* name;
  const char* needs;  ///< what its sgemm and dgemm need of the processor, as /proc/cpuinfo calls it
};
constexpr const char* kSkylakeX = "avx512f avx512bw avx512cd avx512dq avx512vl";
/// The core types of OpenBLAS for x86-64 whose needs are known; AMD's with fma4 are left to OpenBLAS.
constexpr CoreType kCoreTypes[] = {{"Prescott", "pni"},     {"Core2", "ssse3"},       {"Atom", "ssse3"},
                                   {"Penryn", "sse4_1"},    {"Dunnington", "sse4_1"}, {"Nehalem", "sse4_2"},
                                   {"Sandybridge", "avx"},  {"Haswell", "avx2 fma"},  {"Zen", "avx2 fma"},
                                   {"SkylakeX", kSkylakeX}, {"Cooperlake", kSkylakeX}};

/// Processor features that a core type needs and the processor lacks.
std::string LackingFor(const std::string& name) {
  for (const CoreType& type : kCoreTypes) {
    if (strcasecmp(type.name, name.c_str()) == 0) return sdk::LackingCpuFeatures(type.needs);
  }
  return {};
}

/// The core type that the hello requests, which stays unread; "" without one.
std::string AskedCoreType() {
  const char* fd = std::getenv("ULPSCOPE_FD");
  std::string line(1 << 16, '\0');
  size_t length = 0;
  while (fd != nullptr && length < line.size() && line.find('\n') == std::string::npos) {
    const ssize_t got = recv(std::atoi(fd), line.data(), line.size(), MSG_PEEK);
    if (got <= static_cast<ssize_t>(length))
      return {};  // the harness is gone, or sends a line piece by piece
    length = static_cast<size_t>(got);
  }
  const auto hello = sdk::ParseMessage(line.substr(0, line.find('\n')));
  if (!hello || !hello->contains("knobs") || !(*hello)["knobs"].is_object()) return {};
  const auto knob = (*hello)["knobs"].find(kCoreKnob);
  return knob != (*hello)["knobs"].end() && knob->is_string() ? knob->get<std::string>() : "";
}

/// "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..." -> "0.3.21"
std::string Version() {
  const std::string config = openblas_get_config();
  const size_t begin = config.find(' ');
  if (begin == std::string::npos) return config;
  return config.substr(begin + 1, config.find(' ', begin + 1) - begin - 1);
}

}  // namespace

void VendorStart() {
  const std::string asked = AskedCoreType();
  const char* now = std::getenv(kCoreVariable);
  if (asked.empty() || asked == "detected" || !LackingFor(asked).empty()) return;
  if (now != nullptr && asked == now) return;
  setenv(kCoreVariable, asked.c_str(), 1);
  char* const arguments[] = {program_invocation_name, nullptr};
  execv("/proc/self/exe", arguments);
}

std::string VendorName() { return "openblas"; }

std::map<std::string, std::string> VendorVersions() {
  return {{"openblas", Version()}, {"corename", openblas_get_corename()}};
}

std::string VendorKnob() { return kCoreKnob; }

std::string VendorSetUp(const std::map<std::string, std::string>&) { return {}; }

std::string VendorCheck(const std::string& value) {
  if (value == "detected") return {};
  if (const std::string lacking = LackingFor(value); !lacking.empty())
    return std::string("knob ") + kCoreKnob + "=" + value + ": this processor lacks " + lacking;
  // OpenBLAS falls back in silence where it does not know the name, or where another core type stands for it.
  if (strcasecmp(value.c_str(), openblas_get_corename()) == 0) return {};
  return std::string("knob ") + kCoreKnob + "=" + value + ": OpenBLAS runs as " + openblas_get_corename();
}

std::string VendorReadBack() { return openblas_get_corename(); }

int VendorThreads() { return openblas_get_num_threads(); }
void VendorSetThreads(int count) { openblas_set_num_threads(count); }

}  // namespace ulpscope::cblas
