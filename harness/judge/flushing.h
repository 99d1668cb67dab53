// Models that drop subnormal numbers, beside those that keep them.
#pragma once

#include <string_view>

#include "harness/model/classification.h"

namespace ulpscope {

/// `model` without "+daz" and "+ftz": the same arithmetic where no subnormal number occurs.
inline PrecisionModel WithoutFlushing(PrecisionModel model) {
  const auto strip = [](std::string* word, std::string_view suffix) {
    if (word->ends_with(suffix)) word->resize(word->size() - suffix.size());
  };
  strip(&model.acc, "+ftz");
  for (auto& [operand, word] : model.in) strip(&word, "+daz");
  std::erase_if(model.in, [](const auto& in) { return in.second == "as_is"; });
  return model;
}

}  // namespace ulpscope
