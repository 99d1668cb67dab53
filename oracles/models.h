// The meaning of the words of precision models: how an operand is rounded, how products and sums are, and what each proves.
//
// A model is a row of words (harness/model/classification.h). This header turns each word into data: a rounding, or an
// accumulator with the error bound that holds for it in every summation order. Bounds, with u the unit roundoff:
//   round to nearest, precision p: a sum of n terms in any binary tree errs by at most (n-1) u sum|t|, u = 2^-p, with no
//     limit on n u (Jeannerod and Rump, "Improved error bounds for inner products in floating-point arithmetic", 2013);
//   truncation: each addition errs by at most a relative 2u, hence ((1+2u)^(n-1) - 1) sum|t|;
//   two roundings per addition (narrow accumulators kept in a float32 register): ((1+u1+u2+u1u2)^(n-1) - 1) sum|t|.
#pragma once

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
  const FloatFormat* format = nullptr;   ///< null: no rounding
  Rounding rounding = Rounding::kNearestEven;
  Subnormals subnormals = Subnormals::kGradual;

  double Apply(double value) const { return format == nullptr ? value : RoundTo(value, *format, rounding, subnormals); }
  double Apply(TwoDoubles value) const { return format == nullptr ? value.hi : RoundTo(value, *format, rounding, subnormals); }
};

/// How sums are accumulated.
struct AccSpec {
  const FloatFormat* format = nullptr;   ///< null: exact
  Rounding rounding = Rounding::kNearestEven;
  bool via_float32 = false;              ///< each addition is rounded to float32 first
  Subnormals subnormals = Subnormals::kGradual;

  bool exact() const { return format == nullptr; }
  /// Bound on |sum of n terms, accumulated in any order - exact sum| relative to sum|t|, `extra` more roundings included.
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
std::optional<RoundSpec> ParseIn(std::string_view word);    ///< as_is, bfloat16_rne, tf32_rna, float16_rne, ...
std::optional<RoundSpec> ParseProd(std::string_view word);  ///< exact, float32, bfloat16, float16
std::optional<AccSpec> ParseAcc(std::string_view word);     ///< exact, float64, float32, float32_rz, bfloat16_via_float32, ...
std::optional<RoundSpec> ParseMid(std::string_view word);   ///< none, bfloat16, ...
std::optional<RoundSpec> ParseOut(std::string_view word);   ///< float32_rne, bfloat16_rz, ...

/// The words of each facet that the bank tries, in the order of the report's vocabulary.
const std::vector<std::string>& InWords();
const std::vector<std::string>& ProdWords();
const std::vector<std::string>& AccWords();
const std::vector<std::string>& MidWords();

/// The rows that the emulated backend is tested at, case by case: each word of each facet at least once. Their stores follow
/// the dtype that a program declares; only the mode of `out` counts.
const std::vector<PrecisionModel>& ModelBank();

/// Reads PrecisionModel::Name() back; `in=WORD` without an operand applies to every
/// operand of more than 16 bits ("*").
Result<PrecisionModel> ParsePrecisionModel(std::string_view name);

}  // namespace ulpscope
