// How much of what repeats one piece of code a test does.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ulpscope::testing {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// `count` draws; under AddressSanitizer a sixteenth of them, at least one. It looks for memory faults and
/// undefined behaviour in the code that every draw runs alike, ten times slower; the wrong numbers that it takes
/// many draws to meet are for the release build to find, in which every draw is made.
constexpr int64_t Draws(int64_t count) { return kSanitized ? std::max<int64_t>(count / 16, 1) : count; }

/// Whether this row of a table is tried, where every row is the same code once more: under AddressSanitizer, for the
/// same reason, each fourth.
constexpr bool Tried(int64_t row) { return !kSanitized || row % 4 == 0; }

}  // namespace ulpscope::testing
