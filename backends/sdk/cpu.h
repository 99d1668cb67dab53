// Instruction sets of the processor. A vendor's library that is set to run kernels for another processor ends
// in SIGILL; an adapter that checks here first answers with the reason.
#pragma once

#include <string>
#include <string_view>

namespace ulpscope::sdk {

/// Those of `features` (words of "flags" in /proc/cpuinfo, separated by spaces) that the processor lacks, in
/// the same form; empty when it has all of them or lists none. The features that ULPSCOPE_CPU_WITHOUT lists
/// count as lacking: a mask, with which one processor stands in for a lesser one.
std::string LackingCpuFeatures(std::string_view features);

}  // namespace ulpscope::sdk
