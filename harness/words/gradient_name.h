// The name of a step that a program does not name: what the gradient of a leaf has been added up to before its last contribution.
#pragma once

#include <string>
#include <string_view>

namespace ulpscope {

inline constexpr std::string_view kPartialGradient = "partial(";

/// "partial(a.grad)".
inline std::string PartialGradientOf(const std::string& leaf_gradient) {
  return std::string(kPartialGradient) + leaf_gradient + ")";
}

}  // namespace ulpscope
