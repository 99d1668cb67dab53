// The integer table behind `fill: normal` (see make_normal_table.py for what an entry is and how it was
// made).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ulpscope {

inline constexpr size_t kNormalOctaves = 32;
inline constexpr size_t kNormalPoints = 64;  ///< per octave of the tail probability
inline constexpr int kNormalTableBits = 28;  ///< fraction bits of an entry

extern const std::array<uint32_t, kNormalOctaves * kNormalPoints> kNormalTable;

}  // namespace ulpscope
