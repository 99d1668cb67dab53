// Evidence against split sums.
#include "harness/judge/chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/base/find.h"
#include "harness/model/cross.h"
#include "harness/words/facets.h"

namespace ulpscope {

std::optional<OneChunk> ShowOneChunk(const Hypothesis& hypothesis, int64_t k,
                                     std::span<const int64_t> elements, std::span<const double> stored) {
  const auto acc = ParseAcc(hypothesis.model().acc);
  if (!acc || acc->partial == nullptr) return std::nullopt;
  const auto partners = ChunkPartners(k);
  std::set<int64_t> left(partners.begin(), partners.end());
  for (size_t i = 0; i < elements.size(); ++i) {
    const auto positions = hypothesis.Together(elements[i], stored[i]);
    if (!Contains(positions, 0)) continue;
    for (const int64_t position : positions) left.erase(position);
    if (!left.empty()) continue;
    return OneChunk{
        .index = i,
        .why = fmt::format("the terms at positions 1, 2, 4, ... and {} were each added to that at position 0 "
                           "before anything was stored: no sum of {} terms that is split leaves all of them "
                           "together",
                           k - 1, k)};
  }
  return std::nullopt;
}

}  // namespace ulpscope
