// A counter-based source of numbers: the mixing function of splitmix64.
#pragma once

#include <cstdint>

namespace ulpscope {

/// 2^64 divided by the golden ratio: steps of it visit every 64-bit number.
constexpr uint64_t kGoldenGamma = 0x9E3779B97F4A7C15u;

/// Every bit of `z` reaches every bit of the result (Steele, Lea and Flood 2014, with Stafford's thirteenth constants).
constexpr uint64_t MixBits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace ulpscope
