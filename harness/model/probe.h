// Probes: dot products whose results tell, bit by bit, how they were computed.
//
// Random data hides most of what a kernel does: the roundings of its accumulator drown in one another. A probe has at most
// three non-zero summands, so every summation tree can be enumerated and the set of possible results is exact. A group
// lists the permutations of its summands over fixed positions. Whatever tree a kernel uses, each pair of summands meets
// first equally often over the permutations, so the sorted outputs of a group do not depend on the tree; the members have
// to run at the same output coordinate in separate launches, because libraries sum other coordinates in other orders.
//
// Families, and what they read (Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ CS 2021,
// and FPRev, Xie et al., USENIX ATC 2025, use relatives of swamp, mode, range and mask):
//   single        one product: ties at the precision of each format, full-width significands    IN PROD MID OUT rounding
//   range         large, small and subnormal operands and results                               conversion, DAZ, FTZ
//   double_round  values that two roundings in a row take elsewhere                              MID
//   pair          {1, 2^-k} and {1 + ulp, m ulp/2}                                               final rounding
//   residual      {a b, -c}, c = a b cut to 7 bits                                               IN through a narrow store
//   swamp         {2^e, 1, -2^e} in all orders                                                   accumulator width
//   mode          {2^p (+2), m, -2^p}                                                            accumulator rounding
//   wide          {1, 2^-p, 2^-k}                                                                wider accumulators
//   mask          +-M over a field of units                                                      order, fused groups
//   fuse          an addend that cancels the rounded sum                                         MID before a consumer
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/num/dtype.h"

namespace ulpscope {

/// One non-zero summand: the operands' values at a position along the reduction axis.
struct ProbeTerm {
  int64_t position = 0;
  double a = 0, b = 0;
};

/// One dot product; positions without a term hold zeros.
struct ProbeDot {
  std::vector<ProbeTerm> terms;
  double addend = 0;  ///< of fuse alone
};

struct ProbeGroup {
  std::string family;
  std::string name;  ///< says the values and positions, "swamp e=25 at 0,1,2"
  /// One dot product, or the permutations of its summands over the same positions.
  std::vector<ProbeDot> members = {};
  /// Residuals whose two summands lie at many pairs of positions tell whether the pair shares a chunk of
  /// split-K.
  bool tells_chunks() const { return name.starts_with("{a b, -c} apart"); }
};

/// single range double_round pair residual swamp mode wide mask fuse
const std::vector<std::string>& ProbeFamilies();

/// The groups of `family` whose values `dtype` holds and that fit a reduction of `k` terms; empty where none
/// does.
std::vector<ProbeGroup> ProbeGroups(std::string_view family, DType dtype, int64_t k);

/// The fields of units that `mask` probes: at most this many positions, from the front.
inline constexpr int64_t kMaskWindow = 64;
/// unit and mask of the mask family, as products of two operands.
inline constexpr int kMaskUnitExponent = -12, kMaskExponent = 30;

/// Positions (i, j) of the masks +M and -M of each group of family `mask`, in their order.
std::vector<std::pair<int64_t, int64_t>> MaskPairs(int64_t k);

}  // namespace ulpscope
