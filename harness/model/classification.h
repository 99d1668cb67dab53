// Precision models by name, and what the classifier concludes about one observed value.
//
// A model is data: one word per facet of the pipeline IN -> PROD -> ACC -> MID -> OUT, plus the rounding of
// each named intermediate (cuts). Its meaning, how to emulate it and what bounds it proves, lives in
// oracles/.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/tensor.h"

namespace ulpscope {

struct PrecisionModel {
  std::map<std::string, std::string> in;  ///< operand -> input rounding; operands that are as_is are left out
  std::string prod = "exact";
  std::string acc = "float32";
  std::string mid = "none";
  std::string out = "float32_rne";
  std::map<std::string, std::string>
      cuts;  ///< intermediate -> format it is rounded to; unrounded ones are left out

  /// "in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne", with `in=x:bfloat16_rne` for a rounded operand and
  /// `;cuts=product:bfloat16` when an intermediate is rounded. ParsePrecisionModel reads it back.
  std::string Name() const;
  auto operator<=>(const PrecisionModel&) const = default;
};

enum class ClassificationKind {
  kIdentified,
  kIndistinguishable,
  kUnmodelled,
  kExactOnly,
  kNotFloating,
  kNoReference,
  kNotJudged,   ///< several steps as one: too many models for the work that one value may cost
  kWrongShape,  ///< not the shape that the program has: no element of it is compared with anything
  kWrongValue  ///< whole numbers or truth values that nothing on their way rounds, and they are not the program's
};
/// identified indistinguishable unmodelled exact_only not_floating no_reference not_judged wrong_shape wrong_value
std::string_view Name(ClassificationKind kind);
/// Whether elements of such a value were compared with exact ones.
bool IsMeasured(ClassificationKind kind);
/// Not what the program gives in any precision: whatever the contract asks for, or accepts, is violated.
bool IsWrong(ClassificationKind kind);

/// The element whose observed value a model cannot produce.
struct Exclusion {
  PrecisionModel model;
  std::vector<int64_t> element;
  double observed = 0;
  double reference = 0;      ///< the exact value, rounded to binary64
  double low = 0, high = 0;  ///< everything the model can produce there, in any accumulation order
  std::string why;           ///< one sentence
};

/// Elements that share a model which the rest does not.
struct Region {
  std::string where;  ///< "columns 256 to 299", "row 3", "elsewhere"
  std::string label;
};

/// Key of Classification::as_exact, beside those of facets.
constexpr std::string_view kAccOnce = "acc_once";

/// Some hundred results of one distribution differ by so much; sums of one bit less err twice as much.
constexpr double kAsFloat32 = 1.25;
/// Nothing is proved against a class of sums by errors that are no larger: where float32 in every order is off by half a unit, Kahan's sum
/// may be off by one, and nine products of three bfloat16 pieces by one and a half. Sums of two bits less are off by two.
constexpr double kNearFloat32 = 3.5;

struct Classification {
  ClassificationKind kind = ClassificationKind::kNoReference;
  std::vector<PrecisionModel> models;  ///< explain the bits: hard evidence and likelihood; empty if none does
  std::vector<PrecisionModel>
      models_proved;  ///< not excluded by hard evidence, which need not say that they fit
  /// The residuals fit one of `models`, everywhere: without that nothing is confirmed.
  bool fits = false;
  /// Facet (acc, mid, in.OPERAND) of a value that fits -> the fewest bits that it may keep for all that these inputs tell.
  std::map<std::string, int> floors;
  std::vector<std::string> says;  ///< what the numbers do say where no model explains them
  std::vector<Region> regions;    ///< where the elements do not share one model
  std::vector<Exclusion> excluded;
  int64_t excluded_elsewhere =
      0;  ///< recorded exclusions that are not among `excluded`: the run folder has them
  bool rests_on_likelihood = false;  ///< models is smaller than models_proved
  int64_t elements = 0, checked = 0;
  double max_ulp = 0;  ///< against the exact value, in ulps of the value's dtype
  double max_abs = 0;  ///< largest absolute error against the exact value
  /// The errors in those of float32 throughout, where they fit it and are more than twice as large as in any order tried: functions and
  /// forms of a library. Else 0.
  double beyond = 0;
  /// Of a further input (harness/judge/combine.h) which no float32 sum of the bank gives, and of results that nothing explains and of which
  /// nothing but their errors is said: these in those of float32 sums in the orders tried, and of a mean's other forms, the larger of
  /// root mean squares and largest ones, where that is kNearFloat32 at most: guard bits, compensations, wide units. Else 0.
  double within = 0;
  /// Half of the results, and sixteen, err in some float32 order by more than their store does: `within` tells of the sums.
  bool within_sums = false;
  bool within_forms = false;  ///< a mean's other forms err by more than its sums do: `within` is in theirs
  int64_t models_tried = 0;
  std::string label;  ///< one plain phrase
  std::vector<std::string> notes;
  /// facet -> words that survive in `models`; keys prod acc mid out
  std::map<std::string, std::vector<std::string>> facets;
  std::map<std::string, std::vector<std::string>> facets_in;  ///< per operand
  std::map<std::string, std::vector<std::string>>
      cuts;  ///< intermediate -> formats that survive ("none" included)
  /// Of a further input: model of a split sum -> positions of terms that it does not show to lie in one chunk with the first one
  /// (harness/judge/chunks.h).
  std::map<std::string, std::vector<int64_t>> apart = {};
  /// acc, prod -> the words that give here what `exact` gives, by construction: one rounding, which the store makes too; kAccOnce -> those
  /// of acc that do in one of their orders. Empty elsewhere.
  std::map<std::string, std::vector<std::string>> as_exact = {};
  /// The share of the sampled results that the best order of one of `models` gives bit by bit.
  double reproduced = 0;
  /// What was judged as one: empty for the whole program, else "step", and the uses that were not rounded in between. Models of
  /// different pieces are no rivals.
  std::string piece = {};
  /// Of one step of a program: operand -> what it may have been read as: "stored", "unrounded" (as it was before it was
  /// rounded to its dtype), or a format that it was rounded to on the way. Operands that other steps computed, and tensors of
  /// the case that were not read as they are.
  std::map<std::string, std::vector<std::string>> reads = {};
  /// Of the same step: each set of operands that may have been read unrounded together, "" for none and "c+d" for two.
  std::vector<std::string> together = {};
  /// Of a step that is not computed as it is written: some of the elements that show it, since what is written gives others; of
  /// those it gives the one nearest to what was observed. So many of how many elements that were looked at show it.
  std::vector<int64_t> shown_by = {};
  std::vector<double> as_written = {};
  int64_t shown_count = 0, shown_of = 0;
  /// Of a value whose program changes where its steps are observed (piece "asked"): intermediate -> "rounded", "unrounded",
  /// or both where the results follow either way; the likelier first.
  std::map<std::string, std::vector<std::string>> on_the_way = {};
};

}  // namespace ulpscope
