// The kernels in plain C++: fma is the C library's (the processor's own instruction where there is one).
#include <cmath>

#define ULPSCOPE_LANES 2
#define ULPSCOPE_TABLE kPortableKernels
#define ULPSCOPE_TABLE_NAME "portable"

namespace {
using V = double __attribute__((vector_size(16)));
inline V Fma(V a, V b, V c) { return V{std::fma(a[0], b[0], c[0]), std::fma(a[1], b[1], c[1])}; }
}  // namespace

#include "oracles/fast/kernels_body.h"
