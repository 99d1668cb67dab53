// CRC-32.
#include "harness/record/crc.h"

#include <zlib.h>

#include <cstdio>

namespace ulpscope {

std::string Crc32Text(std::string_view bytes) {
  const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08lx", crc);
  return digits;
}

}  // namespace ulpscope
