// Knobs of LibTorch: set, and read back.
#pragma once

#include <map>
#include <string>

namespace ulpscope::torch_backend {

/// The backend and device that knobs are for: some act on one kind of device, some on one backend.
struct KnobScope {
  std::string backend;  ///< "torch-eager"
  std::string device;   ///< "cpu", "cuda"
};

/// Sets every knob to its value in `knobs`, or to its default; those of the compiler's process are checked
/// only. Returns "" or what is wrong with which knob.
std::string ApplyKnobs(const KnobScope& scope, const std::map<std::string, std::string>& knobs);

/// The library's current values, under the words of the knobs; nothing for the compiler's own.
std::map<std::string, std::string> ReadKnobs(const KnobScope& scope);

}  // namespace ulpscope::torch_backend
