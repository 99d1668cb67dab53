// What instructions the processor has. Vendors' libraries that are told to run kernels for another processor
// end in SIGILL; an adapter that asks here first answers with the reason.
#pragma once

#include <string>
#include <string_view>

namespace ulpscope::sdk {

/// Those of `features` (words of "flags" in /proc/cpuinfo, separated by spaces) that the processor lacks, in
/// the same form; empty when it has all of them or tells nothing. The features that ULPSCOPE_CPU_WITHOUT
/// lists count as lacking: a mask, with which one processor stands in for a lesser one.
std::string LackingCpuFeatures(std::string_view features);

}  // namespace ulpscope::sdk
