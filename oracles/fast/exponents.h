// Powers of two and exponents of doubles, by their bits.
#pragma once

#include <bit>
#include <cstdint>

namespace ulpscope::fast {

/// 2^exponent; -1022 <= exponent <= 1023.
inline double TwoTo(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

/// floor(log2(x)) of a positive double; a floor of it for subnormals.
inline int FloorLog2(double x) {
  const auto field = static_cast<int>(std::bit_cast<uint64_t>(x) >> 52);
  return field == 0 ? -1074 : field - 1023;
}

/// ceil(log2(x)); 0 for x <= 1.
inline int CeilLog2(int64_t x) {
  return x <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<uint64_t>(x - 1)));
}

}  // namespace ulpscope::fast
