// Evidence against split sums.
#include "harness/judge/chunks.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/find.h"
#include "harness/model/cross.h"
#include "harness/words/facets.h"

namespace ulpscope {

std::optional<Chunks> ChunksShown(const Hypothesis& hypothesis, int64_t k, std::span<const int64_t> elements,
                                  std::span<const double> stored) {
  if (hypothesis.model().acc.partial == nullptr) return std::nullopt;
  Chunks chunks{.apart = ChunkPartners(k)};
  for (size_t i = 0; i < elements.size() && !chunks.apart.empty(); ++i) {
    const auto positions = hypothesis.Together(elements[i], stored[i]);
    if (!Contains(positions, 0)) continue;
    const size_t taken =
        std::erase_if(chunks.apart, [&](const int64_t position) { return Contains(positions, position); });
    if (taken == 0) continue;
    chunks.index = i;
    chunks.shows = true;
  }
  return chunks;
}

std::string WhyOneChunk() {
  return "the terms at positions 1, 2, 4, ... and the last one were each added to that at position 0 before "
         "anything was stored: no sum that is split leaves all of them together";
}

}  // namespace ulpscope
