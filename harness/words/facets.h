// The words of precision facets, typed: how an operand, a product, a sum and a store are rounded.
//
// A precision model has one word per facet of the pipeline IN -> PROD -> ACC -> MID -> OUT
// (harness/model/classification.h). This header alone defines which words there are, what each means and how
// it is spelt: in a model's name, in a case, in the cell of a matrix. Their consequences, the arithmetic of
// an emulation and the bound that it proves, are in oracles/models.h.
//
// Words are read and written where text comes in and goes out (cases, recorded runs, reports). Everything between
// computes with RoundSpec and AccSpec.
#pragma once

#include <compare>
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
  /// Rounds to `other`, in whatever mode.
  bool rounds_to(const FloatFormat& other) const { return format == &other; }
  /// Rounds nothing, or to `other`: a wide sum that is rounded to float32 is one of float32's class.
  bool none_or(const FloatFormat& other) const { return format == nullptr || format == &other; }
  /// To a format that is known by its bits alone (p12), which no dtype has.
  bool to_bits() const { return format != nullptr && IsOfBits(*format); }
  /// The rounding of `_rne`: the nearest value, ties to even, subnormals kept.
  bool to_nearest() const {
    return rounding == Rounding::kNearestEven && !faithful && subnormals == Subnormals::kGradual;
  }
  bool operator==(const RoundSpec&) const = default;
  /// Significant bits that are kept.
  int bits() const { return format == nullptr ? kAllBits : pieces * format->precision; }
  double Apply(double value) const;
  double Apply(TwoDoubles value) const {
    return format == nullptr ? value.hi : RoundTo(value, *format, rounding, subnormals);
  }
};

/// How a running sum keeps a second word, in float32 as the first; oracles/dot/two_word_sums.cc has a row for each.
/// kSum2: the errors of all products and additions in a sum of their own, as in Sum2 and Dot2 of Ogita, Rump and Oishi (2005).
enum class TwoWords { kNone, kSum2 };
inline constexpr size_t kTwoWordKinds = 1;

/// How sums are accumulated.
///
/// blockfma(n,F,mode): n products and the running sum are aligned to the largest exponent among them (that of
/// a product is the sum of its operands' exponents), each cut towards zero at F fraction bits below it, added
/// exactly, and the sum rounded by mode to float32, or to F+1 significant bits where these are fewer (as an H100 sums float8, F = 13);
/// mode rne_float16 rounds it to float16 instead, as units with float16 accumulators do. split_k(partial,combine): contiguous or strided chunks accumulated in
/// float32, each stored as partial, the partials added in combine, a format or p<bits>.
struct AccSpec {
  const FloatFormat* format = nullptr;   ///< null: exact
  int block = 0;                         ///< n of blockfma; 0 for any other accumulator
  int fraction = 0;                      ///< F of blockfma
  const FloatFormat* partial = nullptr;  ///< split_k: the format of a chunk's sum
  const FloatFormat* combine = nullptr;  ///< split_k: the format in which chunks are added
  TwoWords two_words = TwoWords::kNone;
  Rounding rounding = Rounding::kNearestEven;
  bool via_float32 = false;  ///< each addition is rounded to float32 first
  Subnormals subnormals = Subnormals::kGradual;

  bool operator==(const AccSpec&) const = default;

  bool exact() const { return format == nullptr; }
  /// True where one addition follows another, each rounded alike: float32, bfloat16_via_float32, ...
  bool binary() const { return !exact() && block == 0 && partial == nullptr && !in_two_words(); }
  /// The running sum keeps a second word, and is rounded to float32 once at the end.
  bool in_two_words() const { return two_words != TwoWords::kNone; }
  /// Significant bits that every running or partial sum keeps.
  int bits() const;
  /// float32's class or wider: no running or partial sum keeps fewer bits than float32 does.
  bool wide() const { return bits() >= Binary32().precision; }
  /// One addition after another in a format that is known by its bits alone (p12, p26_rz).
  bool in_bits() const { return binary() && IsOfBits(*format); }
  /// Whether it drops subnormal numbers (`+ftz`).
  bool flushes() const { return subnormals == Subnormals::kFlushed; }
  /// More bits than float32 and fewer than float64: such a sum is no candidate.
  bool has_guard_bits() const {
    return binary() && bits() > Binary32().precision && bits() < Binary64().precision;
  }
};

/// One rounding to nearest, ties to even.
inline RoundSpec ToNearest(const FloatFormat& format) { return {.format = &format}; }
/// Rounded to nearest to so many significant bits, 2 to 52.
inline RoundSpec ToBits(int bits) { return ToNearest(FormatOfBits(bits)); }
/// Takes subnormal numbers as zero, and rounds nothing else.
inline bool DropsSubnormalsAlone(const RoundSpec& spec) {
  return spec.format == nullptr && spec.drops_operands();
}
/// Whether it drops subnormal numbers, as operands or as results.
inline bool DropsSubnormals(const RoundSpec& spec) {
  return spec.drops_operands() || spec.subnormals == Subnormals::kFlushed;
}
inline bool DropsSubnormals(const AccSpec& spec) { return spec.flushes(); }
/// Nothing is left but no rounding.
inline bool IsUnrounded(const std::vector<RoundSpec>& roundings) {
  return roundings.size() == 1 && roundings.front().none();
}
/// One addition after another, each rounded to `format`.
inline AccSpec SumsIn(const FloatFormat& format, Rounding rounding = Rounding::kNearestEven) {
  return {.format = &format, .rounding = rounding};
}
/// Partial sums in float32, joined in `combine`.
inline AccSpec JoinedIn(const FloatFormat& combine) {
  return {.format = &Binary32(), .partial = &Binary32(), .combine = &combine};
}
/// Partial sums in float32, joined in float64. If no known order gives the bits, such a sum errs as little as
/// one in float32 throughout; no kernel is known to use it otherwise, so it is a candidate in those cases
/// only.
inline AccSpec JoinedWider() { return JoinedIn(Binary64()); }

// Each parser gives an unset optional for an unknown word.
std::optional<RoundSpec> ParseIn(std::string_view word);  ///< as_is, bfloat16_rne, tf32_rna+daz, bf16x3, ...
std::optional<RoundSpec> ParseProd(std::string_view word);  ///< exact, float32, bfloat16, float16
std::optional<AccSpec> ParseAcc(std::string_view word);     ///< float32, blockfma(8,24,rz), bfloat16+ftz, ...
std::optional<RoundSpec> ParseMid(std::string_view word);   ///< none, bfloat16, p12, ...
std::optional<RoundSpec> ParseOut(std::string_view word);   ///< float32_rne, bfloat16_rz+ftz, ...

// The words back: of all that a parser gives, the word that it was given.
std::string InWord(const RoundSpec& in);
std::string ProdWord(const RoundSpec& prod);
std::string AccWord(const AccSpec& acc);
std::string MidWord(const RoundSpec& mid);  ///< of the rounding of an intermediate too
std::string OutWord(const RoundSpec& out);  ///< "none" of what is not stored in a floating-point format

/// A word without the usual rounding, which goes without saying: "bfloat16" of bfloat16_rne, "bfloat16_rz" as it is.
inline std::string WithoutUsualMode(std::string word) {
  constexpr std::string_view kUsual = "_rne";
  if (word.ends_with(kUsual)) word.resize(word.size() - kUsual.size());
  return word;
}

/// By their words: the order in which reports list them.
std::strong_ordering operator<=>(const AccSpec& a, const AccSpec& b);

/// A few characters for the cell of a matrix: bf16, f32rz, bf16x3, bfma24, split(bf16), f32ftz, ...
std::string Brief(const RoundSpec& spec);
std::string Brief(const AccSpec& spec);

/// A mark of a cell and its meaning, for a legend: "rz", "rounded toward zero".
struct BriefMark {
  std::string_view mark, about;
};
/// Those of roundings, and of accumulators with a word of their own.
std::vector<BriefMark> RoundingMarks();
std::vector<BriefMark> AccMarks();

/// Chunks hold two terms or more: shorter sums are not joined from any.
constexpr int64_t kLeastJoined = 4;

/// A word that a contract may use for all accumulators of a kind.
struct AccClass {
  std::string_view name;
  bool (*holds)(const AccSpec& acc);
};
/// at_least_float32, float32_class, blockfma.
const std::vector<AccClass>& AccClasses();

/// The words of the candidate models, in the order of the report's vocabulary.
const std::vector<std::string>& InWords();
const std::vector<std::string>& ProdWords();
const std::vector<std::string>& AccWords();
const std::vector<std::string>& MidWords();

/// The pattern of exactly the words of accumulators that KnowsAcc knows, their classes included.
std::string AccPattern();
bool KnowsAcc(std::string_view word);

/// One facet as a case writes it.
struct FacetRow {
  std::string_view name;                 ///< in, prod, acc, mid, out
  std::string what;                      ///< for "expected ..."
  std::string regex;                     ///< anchored; holds for exactly the words that `knows` knows
  bool (*knows)(std::string_view word);  ///< classes of accumulators included
};
const std::vector<FacetRow>& Facets();

}  // namespace ulpscope
