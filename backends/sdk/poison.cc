// Memory with a pattern that no result has.

#include <algorithm>

#include "backends/sdk/adapter.h"

namespace ulpscope::sdk {
namespace {

/// The element of the poison, least significant byte first, as memory has it.
void PoisonElement(std::byte* element, size_t size) {
  for (size_t i = 0; i < size; ++i) element[i] = std::byte{0xa5};
  element[size - 1] = std::byte{0xff};
  if (size > 1) element[size - 2] = std::byte{0xfa};
}

}  // namespace

void FillPoison(std::span<std::byte> bytes, size_t element_size) {
  for (size_t at = 0; at + element_size <= bytes.size(); at += element_size)
    PoisonElement(&bytes[at], element_size);
}

int64_t CountPoisoned(const TensorData& tensor) {
  const size_t size = SizeOf(tensor.dtype);
  std::vector<std::byte> poison(size);
  PoisonElement(poison.data(), size);
  int64_t count = 0;
  for (size_t at = 0; at + size <= tensor.bytes.size(); at += size) {
    if (std::equal(poison.begin(), poison.end(), tensor.bytes.begin() + static_cast<std::ptrdiff_t>(at)))
      ++count;
  }
  return count;
}

}  // namespace ulpscope::sdk
