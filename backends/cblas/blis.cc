// BLIS: kernels for another processor are requested by a variable that is read at the library's first use.
//
// The variable holds a number, and what BLIS was not built for, or does not know, makes it abort. A child
// process tries first, so that a knob that cannot be served is an answer and no crash.
#include <blis.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "backends/cblas/vendor.h"
#include "backends/sdk/cpu.h"

namespace ulpscope::cblas {
namespace {

constexpr const char* kArchKnob = "blis_arch_type";

std::string NameOf(int arch) { return bli_arch_string(static_cast<arch_t>(arch)); }

std::optional<int> ArchOf(const std::string& name) {
  for (int arch = 0; arch < BLIS_NUM_ARCHS; ++arch) {
    if (strcasecmp(name.c_str(), NameOf(arch).c_str()) == 0) return arch;
  }
  return std::nullopt;
}

/// Processor features that an architecture's kernels need and the processor lacks; BLIS does not check them.
std::string LackingFor(const std::string& arch) {
  if (arch.starts_with("zen") || arch == "haswell") return sdk::LackingCpuFeatures("avx2 fma");
  if (arch == "skx") return sdk::LackingCpuFeatures("avx512f avx512bw avx512cd avx512dq avx512vl");
  return {};
}

/// True when BLIS starts with the kernels that the environment requests. Called while this process has one
/// thread.
bool StartsInAChild() {
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr ||
        std::freopen("/dev/null", "w", stderr) == nullptr)
      _exit(1);
    bli_init();
    _exit(bli_arch_query_id() < BLIS_NUM_ARCHS ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Sets the variable, where BLIS starts with it. Returns "" or what is wrong.
std::string AskForArch(const std::string& name) {
  const std::string what = std::string("knob ") + kArchKnob + "=" + name;
  const std::optional<int> arch = ArchOf(name);
  if (!arch) return what + ": BLIS knows no such architecture";
  if (const std::string lacking = LackingFor(NameOf(*arch)); !lacking.empty())
    return what + ": this processor lacks " + lacking;
  setenv("BLIS_ARCH_TYPE", std::to_string(*arch).c_str(), 1);
  if (StartsInAChild()) return {};
  unsetenv("BLIS_ARCH_TYPE");
  return what + ": this BLIS has no kernels for it";
}

}  // namespace

void VendorStart() {}

std::string VendorName() { return "blis"; }

std::map<std::string, std::string> VendorVersions() {
  return {{"blis", bli_info_get_version_str()}, {"arch", NameOf(bli_arch_query_id())}};
}

std::string VendorKnob() { return kArchKnob; }

std::string VendorSetUp(const std::map<std::string, std::string>& knobs) {
  // A preset of the user's would be in force under every other value of the knob.
  unsetenv("BLIS_ARCH_TYPE");
  std::string problem;
  const auto asked = knobs.find(kArchKnob);
  if (asked != knobs.end() && asked->second != "detected") problem = AskForArch(asked->second);
  // The architecture can be queried only after this; before it, with the variable set, the query aborts.
  bli_init();
  return problem;
}

std::string VendorCheck(const std::string& value) {
  const std::string runs_as = NameOf(bli_arch_query_id());
  if (value == "detected" || strcasecmp(value.c_str(), runs_as.c_str()) == 0) return {};
  return std::string("knob ") + kArchKnob + "=" + value + ": BLIS runs as " + runs_as;
}

std::string VendorReadBack() { return NameOf(bli_arch_query_id()); }

int VendorThreads() {
  // A build without threads keeps the number that is set and works alone.
  return bli_info_get_enable_threading() != 0 ? static_cast<int>(bli_thread_get_num_threads()) : 1;
}
void VendorSetThreads(int count) { bli_thread_set_num_threads(count); }

}  // namespace ulpscope::cblas
