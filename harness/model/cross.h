// Crossed probes: two operands of which every line of the one meets every line of the other in a dot product
// that tells.
//
// A family of probe.h needs a row of its own for each of its dot products, and a product of M rows and N columns shows
// M of them, on its diagonal. The lines of a crossed probe fit each other whatever the pairing, so all M N results are
// evidence: a 16 x 16 product holds 256 dot products instead of 16. Their significands have the operands' full width and
// no structure; at most three terms of a dot product are not zero, so that every order of summation can be listed
// (Hypothesis::Possible).
//
//   single  one product, of sizes inside and beyond the range of float16, some half-way between two results: IN, PROD, MID, OUT
//   cancel  a b + c d - e f with a small result: no two of the terms add up to what a narrow format holds, so that
//           in no order of summation a narrow accumulator gives what a wide one does
//   swamp   2^g a w + b w - 2^g a w in all orders, g from 16 to 25: which bits of b w a float32 sum keeps, and
//           how it rounds them
//   wide    half-way between two values of 8 or 11 bits, but for a term that float32 drops: float64 and wider sums, and
//           whether they are rounded to float32 before a narrow store
//   tie     the same, but for a term that float32 keeps and 16-bit sums drop in every order
//   half    a value and half a unit of its last place in 8, 11 or 24 bits, or more than half: whether a store rounds ties to even or
//           away, or cuts
//   chunk   a b - c d at pairs of positions that any split of a long sum puts apart somewhere
//
// Ops around a sum have lines of their own, in which two terms count: no order of summation has a choice, so that a narrow sum
// is one number, and another one than a wide sum's.
//
//   squares    two values                                                                       rms_norm
//   opposed    a and -a, from sizes that an epsilon of 1e-5 buries to those that bury it        layer_norm
//   exponents  a and -b, the others so low that nothing of their exponentials is left; every eighth line around 120,
//              where exponentials overflow unless the maximum is taken away first               softmax
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/num/dtype.h"

namespace ulpscope {

/// single cancel swamp wide tie half chunk squares opposed exponents
const std::vector<std::string>& CrossNames();

/// Significant bits below which a dtype has no lines: their significands would not have the width to tell anything.
constexpr int kLeastCrossBits = 8;

/// Terms below which `name` has no line: 1, 3, 3, 3, 3, 2, 2, 2, 2, 2.
int64_t LeastCrossLength(std::string_view name);

/// kSum: the line of a sum that is no product, which one line of kB would pick out of kA's; swamp, wide, tie and half
/// have some, squares, opposed and exponents nothing else.
enum class CrossSide { kA, kB, kSum };

/// One line of an operand: position along the sum, value. Positions that are not named hold zeros.
struct CrossTerm {
  int64_t position = 0;
  double value = 0;
};

/// Line `line` (from 0, without end) of the operand `side` for sums of `k` terms in `dtype`, a floating dtype of 8 or
/// more significant bits. Empty where `k` is less than the least length.
std::vector<CrossTerm> CrossLine(std::string_view name, CrossSide side, DType dtype, int64_t k, int64_t line);

/// Positions whose terms some chunk of a split lies apart from position 0's in, whether the chunks are contiguous, strided
/// or dealt out in blocks: 1, 2, 4, ... and k - 1. A sum whose terms at all of them were added to that at position 0 before
/// anything was stored has one chunk.
std::vector<int64_t> ChunkPartners(int64_t k);

}  // namespace ulpscope
