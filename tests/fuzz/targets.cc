// How a broken promise and a planted fault end the process.
#include "tests/fuzz/targets.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace ulpscope::fuzz {

void Demand(bool kept, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

void Plant(bool reached) {
  static const char* const planted = std::getenv("ULPSCOPE_FUZZ_PLANT");
  if (planted == nullptr || !reached) return;
  // The length is one that no compiler knows: GCC would refuse to compile the access.
  const std::vector<char> buffer(std::strlen(planted) + 8, 'x');
  const volatile char* bytes = buffer.data();
  std::fprintf(stderr, "%c", bytes[buffer.size()]);
}

}  // namespace ulpscope::fuzz
