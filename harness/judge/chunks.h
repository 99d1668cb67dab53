// Whether a result shows that its sums were never split: evidence against split_k that no single element holds. A
// split-K kernel stores a partial sum for each chunk of the sum and adds them. Any few terms may lie in one chunk, so
// an element with few terms proves at most that those lay together. Chunks are contiguous, strided or dealt out in
// blocks, and all elements of a result are split alike. If the term at position 0 lies together with those at 1, 2, 4,
// ... and at the end, no such split into two chunks or more is left.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/model/oracle.h"

namespace ulpscope {

/// The evidence that the elements of one result give, for sums of `k` terms.
struct Chunks {
  std::vector<int64_t> apart;  ///< positions that may lie in another chunk than position 0
  size_t index = 0;            ///< of the last element that took one away
  bool shows = false;          ///< some element did
};

/// Nothing for models without partial sums.
std::optional<Chunks> ChunksShown(const Hypothesis& hypothesis, int64_t k, std::span<const int64_t> elements,
                                  std::span<const double> stored);

/// The reason why there is only one chunk, if no position may lie in another.
std::string WhyOneChunk();

}  // namespace ulpscope
