// The instruction set that oneDNN may use: by the names of its variable ONEDNN_MAX_CPU_ISA.
#pragma once

#include <map>
#include <string>

namespace ulpscope::onednn {

/// The instruction set that oneDNN uses: "AVX512_CORE_BF16"; never more than the processor has.
std::string EffectiveIsa();

/// Caps it, which works until oneDNN is first used; "default" leaves it to oneDNN and the processor.
/// Returns "" or what is wrong: an unknown name, or a set that oneDNN does not run with.
std::string CapIsa(const std::string& name);

}  // namespace ulpscope::onednn
