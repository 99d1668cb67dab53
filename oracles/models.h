// Arithmetic of the words of precision models, and the bounds that each proves.
//
// A model is a row of words (harness/model/classification.h), each of which is a rounding or an accumulator
// (harness/words/facets.h). This header has their arithmetic, and the error bound that holds for an accumulator in every
// summation order. Bounds, with u the unit roundoff:
//   round to nearest, precision p: a sum of n terms in any binary tree errs by at most (n-1) u sum|t|, u = 2^-p, with no
//     limit on n u (Jeannerod and Rump, "Improved error bounds for inner products in floating-point arithmetic", 2013);
//   truncation, and any other rounding to a neighbour: each addition errs by at most a relative 2u, hence
//     ((1+2u)^(n-1) - 1) sum|t|;
//   two roundings per addition (narrow accumulators kept in a float32 register): ((1+u1+u2+u1u2)^(n-1) - 1) sum|t|.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/result.h"
#include "harness/model/classification.h"
#include "harness/words/facets.h"

namespace ulpscope {

/// The products that a multiplication of a and b becomes: one, or one for each pass of a split operand,
/// smallest first, as kernels add them. Every product of pieces of at most 26 bits is exact in binary64.
struct Products {
  std::array<TwoDoubles, 9> value{};
  std::array<double, 9> a{}, b{};  ///< the factors
  int count = 0;
};
Products Multiply(const RoundSpec& in_a, const RoundSpec& in_b, const RoundSpec& prod, double a, double b);

/// Bound on |sum of n terms, accumulated in any order - exact sum| relative to sum|t|.
double RelativeBound(const AccSpec& acc, int64_t n);
/// Upper bound of the additional loss of n steps to the subnormal quantum.
double AbsoluteBound(const AccSpec& acc, int64_t n);
/// Whether every order sums multiples of 2^lowest exactly, with no partial sum larger in magnitude than
/// `most`: no addition has a bit to round. If the terms have both signs, `most` is the larger of the sum of
/// the positive ones and the magnitude of the sum of the negative ones. Operands of block units are normal
/// numbers: subnormal ones may be aligned by an exponent above their own.
bool SumsExactly(const AccSpec& acc, int lowest, double most);
/// The format of its sum; null if it is exact.
const FloatFormat* SumFormat(const AccSpec& acc);
/// Unit roundoff of one elementary step.
double UnitOf(const AccSpec& acc);
/// One addition: s + t rounded as the accumulator does. s is one of its values, t is exact.
double StepIn(const AccSpec& acc, double s, TwoDoubles t);
/// One value rounded to the accumulator's format.
double StoreIn(const AccSpec& acc, TwoDoubles value);

/// The models with which the emulated backend is tested, case by case: each word of each facet at least once. Their
/// output roundings follow the dtype that a program declares; only the mode of `out` counts.
const std::vector<PrecisionModel>& ModelBank();

/// Reads PrecisionModel::Name() back; `in=WORD` without an operand applies to every
/// operand of more than 16 bits ("*").
Result<PrecisionModel> ParsePrecisionModel(std::string_view name);

}  // namespace ulpscope
