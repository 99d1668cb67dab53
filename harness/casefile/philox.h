// Philox4x32-10: a counter-based generator. Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
// 1, 2, 3", SC11.
//
// Element i of a tensor is a pure function of (seed, tensor name, i): no state, no order, the same bits on
// every machine.
#pragma once

#include <array>
#include <cstdint>

namespace ulpscope {

constexpr std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = 0xD2511F53ull * counter[0];
    const uint64_t b = 0xCD9E8D57ull * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

}  // namespace ulpscope
