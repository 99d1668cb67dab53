// Reads the floating-point control word.
#include "oracles/fast/float_env.h"

#include <cfenv>
#include <cstdio>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace ulpscope::fast {

#if defined(__SSE2__)

namespace {
constexpr unsigned kDenormalsAreZero = 0x0040, kRounding = 0x6000, kFlushToZero = 0x8000;
}

bool DefaultFloatEnvironment() {
  return (_mm_getcsr() & (kDenormalsAreZero | kRounding | kFlushToZero)) == 0;
}

std::string DescribeFloatEnvironment() {
  char text[32];
  std::snprintf(text, sizeof text, "MXCSR 0x%04x", _mm_getcsr());
  return text;
}

#else

bool DefaultFloatEnvironment() {
  volatile double smallest_normal = 0x1p-1022, subnormal = 0x1p-1074;
  return std::fegetround() == FE_TONEAREST && smallest_normal / 2 != 0 &&
         subnormal * 0x1p52 == smallest_normal;
}

std::string DescribeFloatEnvironment() { return "fegetround " + std::to_string(std::fegetround()); }

#endif

}  // namespace ulpscope::fast
