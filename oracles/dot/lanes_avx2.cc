// Steps of eight or sixteen sums at once for AVX2 with FMA. Compiled without contraction: a product that is rounded stays so.
#if defined(__x86_64__)
#include <immintrin.h>

#include "oracles/dot/lanes.h"

namespace ulpscope {
namespace {

template <bool kFused>
inline __m256 Step(const float* a, const float* b, __m256 sum) {
  const __m256 x = _mm256_loadu_ps(a), y = _mm256_loadu_ps(b);
  return kFused ? _mm256_fmadd_ps(x, y, sum) : _mm256_add_ps(sum, _mm256_mul_ps(x, y));
}

template <bool kFused>
void Chain(const float* a, const float* b, LaneChain chain, size_t lanes, float* sum) {
  __m256 low = _mm256_loadu_ps(sum);
  __m256 high = lanes > 8 ? _mm256_loadu_ps(sum + 8) : _mm256_setzero_ps();
  for (size_t i = 0; i < chain.count; ++i) {
    std::ptrdiff_t unit = chain.first + static_cast<std::ptrdiff_t>(i) * chain.stride;
    if (chain.pairs && ((i & 1) != 0 || i + 1 < chain.count)) unit ^= 1;
    const std::ptrdiff_t at = unit * static_cast<std::ptrdiff_t>(lanes);
    low = Step<kFused>(a + at, b + at, low);
    if (lanes > 8) high = Step<kFused>(a + at + 8, b + at + 8, high);
  }
  _mm256_storeu_ps(sum, low);
  if (lanes > 8) _mm256_storeu_ps(sum + 8, high);
}

void AddLanes(float* sum, const float* more, size_t lanes) {
  for (size_t i = 0; i < lanes; i += 8)
    _mm256_storeu_ps(sum + i, _mm256_add_ps(_mm256_loadu_ps(sum + i), _mm256_loadu_ps(more + i)));
}

}  // namespace

const LaneSteps kAvx2LaneSteps{.fused = Chain<true>, .twice = Chain<false>, .add = AddLanes};

}  // namespace ulpscope
#endif
