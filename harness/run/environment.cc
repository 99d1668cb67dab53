// The environment of a worker.
#include "harness/run/environment.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

#include "harness/base/find.h"

namespace ulpscope {
namespace {

/// Passed through: none of these changes a number. Libraries and devices must be found as the user set them
/// up.
constexpr std::array<const char*, 13> kPassed{"ULPSCOPE_CPU_WITHOUT",  // a mask of the processor's features
                                              "PATH",
                                              "HOME",
                                              "USER",
                                              "LOGNAME",
                                              "XDG_CACHE_HOME",
                                              "LD_LIBRARY_PATH",
                                              "CUDA_VISIBLE_DEVICES",
                                              "CUDA_HOME",
                                              "SSL_CERT_FILE",
                                              "ASAN_OPTIONS",
                                              "UBSAN_OPTIONS",
                                              "TSAN_OPTIONS"};

std::string Get(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Compiled kernels are kept between runs: inductor takes seconds for each.
std::string InductorCache(const std::filesystem::path& scratch) {
  std::string cache = Get("XDG_CACHE_HOME");
  // Without a home it does not outlive the run: code is run from it, and a name that others can guess is theirs to fill.
  if (cache.empty()) cache = Get("HOME").empty() ? scratch.string() : Get("HOME") + "/.cache";
  return cache + "/ulpscope/inductor";
}

}  // namespace

std::vector<std::string> WorkerEnvironment(const std::map<std::string, std::string>& knobs,
                                           const Places& places, const std::filesystem::path& scratch,
                                           const std::string& token) {
  std::vector<std::string> entries;
  for (const char* name : kPassed) {
    if (const char* value = std::getenv(name)) entries.push_back(std::string(name) + "=" + value);
  }
  const std::string count = LookupOr(knobs, "threads", "1");
  for (const char* name :
       {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"}) {
    entries.push_back(std::string(name) + "=" + count);
  }
  entries.push_back("LANG=C.UTF-8");
  entries.push_back("TZ=UTC");
  entries.push_back("TMPDIR=" + scratch.string());
  entries.push_back("TORCHINDUCTOR_CACHE_DIR=" + InductorCache(scratch));
  entries.push_back("TORCHINDUCTOR_COMPILE_THREADS=1");  // else a pool of processes outlives the compilation
  entries.push_back("PYTHONPATH=" + (places.root / "backends/python").string());
  entries.push_back("PYTHONHASHSEED=0");
  entries.push_back("PYTHONDONTWRITEBYTECODE=1");
  entries.push_back("ULPSCOPE_ROOT=" + places.root.string());
  entries.push_back(std::string(kTokenVariable) + "=" + token);
  return entries;
}

}  // namespace ulpscope
