// The meaning of the words of precision models: how an operand is rounded, how products and sums are, and what each proves.
//
// A model is a row of words (harness/model/classification.h). This header turns each word into data: a rounding, or an
// accumulator with the error bound that holds for it in every summation order. Bounds, with u the unit roundoff:
//   round to nearest, precision p: a sum of n terms in any binary tree errs by at most (n-1) u sum|t|, u = 2^-p, with no
//     limit on n u (Jeannerod and Rump, "Improved error bounds for inner products in floating-point arithmetic", 2013);
//   truncation: each addition errs by at most a relative 2u, hence ((1+2u)^(n-1) - 1) sum|t|;
//   two roundings per addition (narrow accumulators kept in a float32 register): ((1+u1+u2+u1u2)^(n-1) - 1) sum|t|.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/result.h"
#include "harness/model/classification.h"
#include "harness/num/float_format.h"

namespace ulpscope {

/// One rounding of a value: format, mode, subnormals.
struct RoundSpec {
  const FloatFormat* format = nullptr;  ///< null: no rounding
  Rounding rounding = Rounding::kNearestEven;
  Subnormals subnormals = Subnormals::kGradual;
  /// An operand's value below 2^daz_below is taken as zero (`+daz`); subnormals of bfloat16 and float32 lie
  /// below 2^-126.
  int daz_below = -100000;
  /// bf16x3, x6, x9, tf32x3: the operand is the sum of this many values of `format`, each the rounding of
  /// what is left, and a product is the sum of `passes` products of such pieces, the largest ones.
  int pieces = 1, passes = 1;

  bool none() const { return format == nullptr && daz_below <= -100000; }
  double Apply(double value) const;
  double Apply(TwoDoubles value) const {
    return format == nullptr ? value.hi : RoundTo(value, *format, rounding, subnormals);
  }
};

/// The products that a multiplication of a and b becomes: one, or one for each pass of a split operand,
/// smallest first, as kernels add them. Every product of pieces of at most 26 bits is exact in binary64.
struct Products {
  std::array<TwoDoubles, 9> value{};
  std::array<double, 9> a{}, b{};  ///< the factors
  int count = 0;
};
Products Multiply(const RoundSpec& in_a, const RoundSpec& in_b, const RoundSpec& prod, double a, double b);

/// How sums are accumulated.
///
/// blockfma(n,F,mode): n products and the running sum are aligned to the largest exponent among them (that of
/// a product is the sum of its operands' exponents), each cut towards zero at F fraction bits below it, added
/// exactly, and the sum rounded to float32 by mode; mode rne_float16 rounds it to float16 instead, as units
/// with float16 accumulators do. split_k(partial,combine): contiguous or strided chunks accumulated in
/// float32, each stored as partial, the partials added in combine. compensated: the running sum keeps a
/// second word, as in Sum2 and Dot2 of Ogita, Rump and Oishi (2005), and is rounded to float32 once at the
/// end.
struct AccSpec {
  const FloatFormat* format = nullptr;   ///< null: exact
  int block = 0;                         ///< n of blockfma; 0 for any other accumulator
  int fraction = 0;                      ///< F of blockfma
  const FloatFormat* partial = nullptr;  ///< split_k: the format of a chunk's sum
  const FloatFormat* combine = nullptr;  ///< split_k: the format in which chunks are added
  bool compensated = false;
  Rounding rounding = Rounding::kNearestEven;
  bool via_float32 = false;  ///< each addition is rounded to float32 first
  Subnormals subnormals = Subnormals::kGradual;

  bool exact() const { return format == nullptr; }
  /// True where one addition follows another, each rounded alike: float32, bfloat16_via_float32, ...
  bool binary() const { return !exact() && block == 0 && partial == nullptr && !compensated; }
  /// Bound on |sum of n terms, accumulated in any order - exact sum| relative to sum|t|, `extra` more
  /// roundings included.
  double RelativeBound(int64_t n) const;
  /// What n steps can lose to the subnormal quantum besides.
  double AbsoluteBound(int64_t n) const;
  /// Unit roundoff of one elementary step.
  double Unit() const;
  /// One addition: s + t rounded as this accumulator does. s is one of its values, t is exact.
  double Step(double s, TwoDoubles t) const;
  /// One value stored in the accumulator.
  double Store(TwoDoubles value) const;
};

// Each parser gives null (or an unset optional) for an unknown word.
std::optional<RoundSpec> ParseIn(std::string_view word);  ///< as_is, bfloat16_rne, tf32_rna, float16_rne, ...
std::optional<RoundSpec> ParseProd(std::string_view word);  ///< exact, float32, bfloat16, float16
std::optional<AccSpec> ParseAcc(
    std::string_view word);  ///< exact, float64, float32_rz, bfloat16_via_float32, blockfma(8,24,rz),
                             ///< split_k(bfloat16,float32), compensated, ...
std::optional<RoundSpec> ParseMid(std::string_view word);  ///< none, bfloat16, ...
std::optional<RoundSpec> ParseOut(std::string_view word);  ///< float32_rne, bfloat16_rz, ...

/// The words of each facet that the bank tries, in the order of the report's vocabulary.
const std::vector<std::string>& InWords();
const std::vector<std::string>& ProdWords();
const std::vector<std::string>& AccWords();
const std::vector<std::string>& MidWords();

/// The rows that the emulated backend is tested at, case by case: each word of each facet at least once.
/// Their stores follow the dtype that a program declares; only the mode of `out` counts.
const std::vector<PrecisionModel>& ModelBank();

/// Reads PrecisionModel::Name() back; `in=WORD` without an operand applies to every
/// operand of more than 16 bits ("*").
Result<PrecisionModel> ParsePrecisionModel(std::string_view name);

}  // namespace ulpscope
