// The harness's own checks of a worker's tensors and canaries: unwritten elements, differences between runs,
// taint.
#pragma once

#include <map>
#include <string>

#include "harness/model/observation.h"

namespace ulpscope {

/// True if an element still holds the poison pattern (most significant byte first FF FA A5 A5 ...). One-byte
/// elements cannot show it: FF is one of their values; nor can int16, whose FF FA is -6.
bool HoldsPoison(const TensorData& tensor);

/// The largest difference of two tensors of the same dtype and shape, in ulps of the larger value (integers:
/// in units). Infinity where one is a number and the other is not. Zero for other bits of the same value,
/// such as -0 and 0.
double LargestDifference(const TensorData& a, const TensorData& b);

/// Adds to first.nondeterministic whatever `again`, another run of the same case, shows differently.
void CompareRepeats(Observation& first, const Observation& again);

/// Empty, or how the FP environment differs from the clean one, before or after the case. Clean is: MXCSR
/// 0x1f80 but for the exception flags, subnormals kept, as many threads as `knobs` request.
std::string DescribeTaint(const Observation& observation, const std::map<std::string, std::string>& knobs);

}  // namespace ulpscope
