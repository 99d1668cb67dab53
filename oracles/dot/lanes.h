// The steps of ManySums for one instruction set.
#pragma once

#include <cstddef>

namespace ulpscope {

/// The units of a chain: `count` of them from `first` on, `stride` apart; with `pairs`, each is replaced by its
/// neighbour (unit ^ 1), except a last one without a neighbour.
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
