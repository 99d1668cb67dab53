// The floating-point environment that every proof of the fast oracle assumes.
#pragma once

#include <string>

namespace ulpscope::fast {

/// True if this thread rounds to nearest and neither flushes subnormal results nor reads subnormal operands
/// as zero. One library built with -ffast-math, loaded anywhere in the process, is enough to make it false.
bool DefaultFloatEnvironment();

/// "MXCSR 0x1f80", or the machine's equivalent.
std::string DescribeFloatEnvironment();

}  // namespace ulpscope::fast
