// SHA-256 (FIPS 180-4): which bytes something was written for.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ulpscope {

/// 64 hexadecimal digits.
std::string Sha256(std::span<const std::byte> bytes);

}  // namespace ulpscope
