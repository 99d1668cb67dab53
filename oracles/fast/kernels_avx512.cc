// The kernels for AVX-512 (F, VL, DQ, BW).
#if defined(__x86_64__)
#include <immintrin.h>

#define ULPSCOPE_LANES 8
#define ULPSCOPE_TABLE kAvx512Kernels
#define ULPSCOPE_TABLE_NAME "avx512"
#define ULPSCOPE_F16C 1

namespace {
using V = double __attribute__((vector_size(64)));
inline V Fma(V a, V b, V c) { return V(_mm512_fmadd_pd(__m512d(a), __m512d(b), __m512d(c))); }
}  // namespace

#include "oracles/fast/kernels_body.h"
#endif
