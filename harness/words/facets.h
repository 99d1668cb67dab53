// The words of precision facets, typed: how an operand, a product, a sum and a store are rounded.
//
// A precision model is one word per facet of the pipeline IN -> PROD -> ACC -> MID -> OUT
// (harness/model/classification.h). Here, and nowhere else, is which words there are, what each says and how
// it is spelt: in a model's name, in a case, in the cell of a matrix. What follows from it, the arithmetic of
// an emulation and the bound that it proves, is the oracles' (oracles/models.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/num/float_format.h"

namespace ulpscope {

/// The significant bits that a word which rounds nothing keeps.
constexpr int kAllBits = 1 << 20;

/// One rounding of a value: format, mode, subnormals.
struct RoundSpec {
  static constexpr int kNeverDropped = -100000;

  const FloatFormat* format = nullptr;  ///< null: no rounding
  Rounding rounding = Rounding::kNearestEven;
  Subnormals subnormals = Subnormals::kGradual;
  /// An operand's value below 2^daz_below is taken as zero (`+daz`); subnormals of bfloat16 and float32 lie
  /// below 2^-126.
  int daz_below = kNeverDropped;
  /// bf16x3, x6, x9, tf32x3: the operand is the sum of this many values of `format`, each the rounding of
  /// what is left, and a product is the sum of `passes` products of such pieces, the largest ones.
  int pieces = 1, passes = 1;
  /// A store that keeps one of the two neighbours, which of them is not known, as stochastic rounding does. Apply takes the
  /// nearest.
  bool faithful = false;

  bool drops_operands() const { return daz_below > kNeverDropped; }
  bool none() const { return format == nullptr && !drops_operands(); }
  bool operator==(const RoundSpec&) const = default;
  /// Significant bits that are kept.
  int bits() const { return format == nullptr ? kAllBits : pieces * format->precision; }
  double Apply(double value) const;
  double Apply(TwoDoubles value) const {
    return format == nullptr ? value.hi : RoundTo(value, *format, rounding, subnormals);
  }
};

/// How sums are accumulated.
///
/// blockfma(n,F,mode): n products and the running sum are aligned to the largest exponent among them (that of
/// a product is the sum of its operands' exponents), each cut towards zero at F fraction bits below it, added
/// exactly, and the sum rounded by mode to float32, or to F+1 significant bits where these are fewer (as an H100 sums float8, F = 13);
/// mode rne_float16 rounds it to float16 instead, as units with float16 accumulators do. split_k(partial,combine): contiguous or strided chunks accumulated in
/// float32, each stored as partial, the partials added in combine, a format or p<bits>. compensated: the running sum keeps a
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
  /// Significant bits that every running or partial sum keeps.
  int bits() const;
  /// float32's class or wider: no running or partial sum keeps fewer bits than float32 does.
  bool wide() const { return bits() >= Binary32().precision; }
  /// More bits than float32 and fewer than float64: no bank lists such a sum.
  bool has_guard_bits() const {
    return binary() && bits() > Binary32().precision && bits() < Binary64().precision;
  }
};

// Each parser gives an unset optional for an unknown word.
std::optional<RoundSpec> ParseIn(std::string_view word);  ///< as_is, bfloat16_rne, tf32_rna+daz, bf16x3, ...
std::optional<RoundSpec> ParseProd(std::string_view word);  ///< exact, float32, bfloat16, float16
std::optional<AccSpec> ParseAcc(std::string_view word);     ///< float32, blockfma(8,24,rz), bfloat16+ftz, ...
std::optional<RoundSpec> ParseMid(std::string_view word);   ///< none, bfloat16, p12, ...
std::optional<RoundSpec> ParseOut(std::string_view word);   ///< float32_rne, bfloat16_rz+ftz, ...

/// A few characters for the cell of a matrix: bf16, f32rz, bf16x3, bfma24, split(bf16), f32ftz, ...
std::string Brief(const RoundSpec& spec);
std::string Brief(const AccSpec& spec);

/// Partial sums in float32, joined in float64. Where no order is known that gives the bits, such a sum errs as little as one in
/// float32 throughout; no kernel shows it otherwise, so the bank leaves it to those cases.
constexpr std::string_view kJoinedWider = "split_k(float32,float64)";
/// Chunks hold two terms or more: shorter sums are not joined from any.
constexpr int64_t kLeastJoined = 4;

/// A word that a contract may use for all accumulators of a kind.
struct AccClass {
  std::string_view name;
  bool (*holds)(const AccSpec& acc);
};
/// at_least_float32, float32_class, blockfma.
const std::vector<AccClass>& AccClasses();

/// The words that the bank of models tries, in the order of the report's vocabulary.
const std::vector<std::string>& InWords();
const std::vector<std::string>& ProdWords();
const std::vector<std::string>& AccWords();
const std::vector<std::string>& MidWords();

/// One facet as a case writes it.
struct FacetRow {
  std::string_view name;                 ///< in, prod, acc, mid, out
  std::string what;                      ///< for "expected ..."
  std::string regex;                     ///< anchored; holds for exactly the words that `knows` knows
  bool (*knows)(std::string_view word);  ///< classes of accumulators included
};
const std::vector<FacetRow>& Facets();

}  // namespace ulpscope
