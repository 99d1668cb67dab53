// The state of the floating-point unit.

#include <bit>

#include "backends/sdk/adapter.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace ulpscope::sdk {

FpState ReadFpState(int64_t threads) {
  FpState state;
  state.threads = threads;
#if defined(__x86_64__) || defined(__i386__)
  // Bits 0 to 5 are sticky exception flags, which ordinary arithmetic sets; only control bits are state.
  state.mxcsr = _mm_getcsr() & ~0x3fU;
#endif
  const volatile float small = 0x1p-100F;
  const volatile float smaller = 0x1p-40F;
  const volatile double tiny = 0x1p-1000;
  const volatile double scale = 0x1p-60;
  const volatile float product = small * smaller;
  const volatile double wide_product = tiny * scale;
  // Compared as bits: under DAZ a comparison takes the subnormal for zero too, and everything looks well.
  state.subnormals_kept = std::bit_cast<uint32_t>(float{product}) == std::bit_cast<uint32_t>(0x1p-140F) &&
                          std::bit_cast<uint64_t>(double{wide_product}) == std::bit_cast<uint64_t>(0x1p-1060);
  return state;
}

}  // namespace ulpscope::sdk
