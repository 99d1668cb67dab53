// Knobs of LibTorch: asked, set, read back.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace ulpscope::torch_backend {

/// knob -> values, default first.
const std::map<std::string, std::vector<std::string>>& KnobValues();

/// Sets every knob to its value in `knobs`, or to its default. Returns "" or what is wrong with which knob.
std::string ApplyKnobs(const std::map<std::string, std::string>& knobs);

/// What the library says now, under the words of KnobValues.
std::map<std::string, std::string> ReadKnobs();

}  // namespace ulpscope::torch_backend
