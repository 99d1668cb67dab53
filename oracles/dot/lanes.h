// The steps of ManySums for one instruction set.
#pragma once

#include <cstddef>

namespace ulpscope {

/// Which units a chain takes: count of them from `first` on, `stride` apart; each unit's neighbour (unit ^ 1) in its place
/// where `pairs` is set, but for a last one that has none.
struct LaneChain {
  std::ptrdiff_t first = 0, stride = 1;
  size_t count = 0;
  bool pairs = false;
};

/// `lanes`, 8 or 16, sums in float32, rounded as the processor is set.
struct LaneSteps {
  /// sum += a b for each unit of the chain: in one rounding, or with the product rounded first.
  void (*fused)(const float* a, const float* b, LaneChain chain, size_t lanes, float* sum);
  void (*twice)(const float* a, const float* b, LaneChain chain, size_t lanes, float* sum);
  void (*add)(float* sum, const float* more, size_t lanes);
};

#if defined(__x86_64__)
extern const LaneSteps kAvx2LaneSteps;
#endif

}  // namespace ulpscope
