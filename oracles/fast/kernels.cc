// Picks the kernels that this machine can run.
#include "oracles/fast/kernels.h"

namespace ulpscope::fast {

const Kernels* KernelsOf(Level level) {
#if defined(__x86_64__)
  if (level == Level::kAvx2)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") ? &kAvx2Kernels : nullptr;
  if (level == Level::kAvx512) {
    const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    return has ? &kAvx512Kernels : nullptr;
  }
#endif
  return level == Level::kPortable ? &kPortableKernels : nullptr;
}

const Kernels& BestKernels() {
  if (const Kernels* kernels = KernelsOf(Level::kAvx512)) return *kernels;
  if (const Kernels* kernels = KernelsOf(Level::kAvx2)) return *kernels;
  return kPortableKernels;
}

}  // namespace ulpscope::fast
