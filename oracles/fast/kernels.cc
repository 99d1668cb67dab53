// Picks the kernels that this machine can run.
#include "oracles/fast/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ulpscope::fast {
namespace {

#if defined(__x86_64__)
/// Conversion of float16 in hardware; Clang 14 does not know its name.
bool HasF16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

}  // namespace

const Kernels* KernelsOf(Level level) {
#if defined(__x86_64__)
  if (level == Level::kAvx2)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && HasF16c() ? &kAvx2Kernels
                                                                                        : nullptr;
  if (level == Level::kAvx512) {
    const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
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
