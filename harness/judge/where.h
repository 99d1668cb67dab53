// Describes in words where the elements lie that one model does not explain.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/model/tensor.h"

namespace ulpscope {

struct Place {
  std::string words;                     ///< "columns 256 to 299", "element [3, 7]"
  std::vector<int64_t> inside, outside;  ///< of the elements that were looked at
};

/// The smallest box that contains every `odd` (outlier) element of those `looked` at; nothing if it covers most of the
/// tensor, or is mostly filled with others. Both lists ascend.
std::optional<Place> PlaceOf(const Shape& shape, std::span<const int64_t> looked,
                             std::span<const int64_t> odd);

}  // namespace ulpscope
