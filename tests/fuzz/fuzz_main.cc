// One target as libFuzzer calls it; ULPSCOPE_FUZZ_TARGET names it.
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ulpscope::fuzz::ULPSCOPE_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
