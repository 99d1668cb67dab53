// Models that drop subnormal numbers, next to those that keep them.
#pragma once

#include "harness/model/classification.h"

namespace ulpscope {

/// `model` without "+daz" and "+ftz": the same arithmetic if no subnormal number occurs.
inline PrecisionModel WithoutFlushing(PrecisionModel model) {
  model.acc.subnormals = Subnormals::kGradual;
  for (auto& [operand, in] : model.in) in.daz_below = RoundSpec::kNeverDropped;
  std::erase_if(model.in, [](const auto& in) { return in.second.none(); });
  return model;
}

}  // namespace ulpscope
