// The kernels for AVX2 with FMA and F16C.
#if defined(__x86_64__)
#include <immintrin.h>

#define ULPSCOPE_LANES 4
#define ULPSCOPE_TABLE kAvx2Kernels
#define ULPSCOPE_TABLE_NAME "avx2"
#define ULPSCOPE_F16C 1

namespace {
using V = double __attribute__((vector_size(32)));
inline V Fma(V a, V b, V c) { return V(_mm256_fmadd_pd(__m256d(a), __m256d(b), __m256d(c))); }
}  // namespace

#include "oracles/fast/kernels_body.h"
#endif
