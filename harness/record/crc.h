// The checksum of records and of the files beside them.
#pragma once

#include <string>
#include <string_view>

namespace ulpscope {

/// CRC-32 (zlib) as eight hex digits.
std::string Crc32Text(std::string_view bytes);

}  // namespace ulpscope
