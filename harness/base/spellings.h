// Names that other languages and libraries have for a word of ours.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace ulpscope {

/// The word that `theirs` is another spelling of, as far as `is_known` knows it: fp32, f32, Float32, torch.float32 and single are float32,
/// fp32_rne is float32_rne, axis is dim. Empty: none is known.
std::string OurSpelling(std::string_view theirs, const std::function<bool(std::string_view)>& is_known);

}  // namespace ulpscope
