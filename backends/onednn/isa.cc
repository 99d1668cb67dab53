// The instruction set: names, cap, read-back.
#include "backends/onednn/isa.h"

#include <oneapi/dnnl/dnnl.hpp>

namespace ulpscope::onednn {
namespace {

const std::map<std::string, dnnl_cpu_isa_t>& Isas() {
  static const std::map<std::string, dnnl_cpu_isa_t> isas = {
    {"SSE41", dnnl_cpu_isa_sse41},
    {"AVX", dnnl_cpu_isa_avx},
    {"AVX2", dnnl_cpu_isa_avx2},
    {"AVX2_VNNI", dnnl_cpu_isa_avx2_vnni},
    {"AVX512_CORE", dnnl_cpu_isa_avx512_core},
    {"AVX512_CORE_VNNI", dnnl_cpu_isa_avx512_core_vnni},
    {"AVX512_CORE_BF16", dnnl_cpu_isa_avx512_core_bf16},
#if DNNL_VERSION_MAJOR >= 3
    {"AVX512_CORE_FP16", dnnl_cpu_isa_avx512_core_fp16},
#endif
    {"AVX512_CORE_AMX", dnnl_cpu_isa_avx512_core_amx}
  };
  return isas;
}

}  // namespace

std::string EffectiveIsa() {
  const dnnl_cpu_isa_t effective = dnnl_get_effective_cpu_isa();
  for (const auto& [name, isa] : Isas()) {
    if (isa == effective) return name;
  }
  return "isa " + std::to_string(static_cast<unsigned>(effective));
}

std::string CapIsa(const std::string& name) {
  const std::string what = "knob onednn_max_cpu_isa=" + name + ": ";
  if (name == "default") return {};
  const auto found = Isas().find(name);
  if (found == Isas().end()) {
    std::string names = "default";
    for (const auto& [each, isa] : Isas()) names += ", " + each;
    return what + "no such instruction set; known: " + names;
  }
  // Refused once oneDNN has been used: the read-back shows whether it runs so already.
  dnnl_set_max_cpu_isa(found->second);
  const std::string runs_as = EffectiveIsa();
  return runs_as == name ? "" : what + "oneDNN runs with " + runs_as;
}

}  // namespace ulpscope::onednn
