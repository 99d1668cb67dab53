// Precision models by name, and what the classifier concludes about one observed value.
//
// A model is data: one rounding per facet of the pipeline IN -> PROD -> ACC -> MID -> OUT, plus that of each named
// intermediate (cuts). Which there are and how they are spelt is in harness/words/facets.h; how to emulate a model, and what
// bounds it proves, lives in oracles/.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/classification_kind.h"
#include "harness/model/remark.h"
#include "harness/model/tensor.h"
#include "harness/words/facets.h"

namespace ulpscope {

/// Value -> one rounding of it, or several that may be its own.
using RoundingSets = std::map<std::string, std::vector<RoundSpec>>;

struct PrecisionModel {
  std::map<std::string, RoundSpec> in =
      {};               ///< operand -> input rounding; operands that are as_is are left out
  RoundSpec prod = {};  ///< none: exact
  AccSpec acc = SumsIn(Binary32());
  RoundSpec mid = {};
  RoundSpec out = ToNearest(Binary32());
  std::map<std::string, RoundSpec> cuts = {};  ///< intermediate -> its rounding; unrounded ones are left out

  /// "in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne", with `in=x:bfloat16_rne` for a rounded operand and
  /// `;cuts=product:bfloat16` when an intermediate is rounded. ParsePrecisionModel reads it back.
  std::string Name() const;
  bool operator==(const PrecisionModel&) const = default;
};
/// Facet by facet, each by its words: the order in which reports list models.
std::strong_ordering operator<=>(const PrecisionModel& a, const PrecisionModel& b);

/// The evidence against a model.
enum class ExcludedBy {
  kBounds,  ///< low to high, everything that it can give, does not hold what was observed
  kStore,   ///< what was observed is no value that it can store
  kOrders,  ///< its orders of summation give many values, and not that one
  kOther    ///< what its sentence states
};
/// bounds store orders other
std::string_view Name(ExcludedBy by);

/// The element whose observed value a model cannot produce.
struct Exclusion {
  PrecisionModel model;
  std::vector<int64_t> element;
  double observed = 0;
  double reference = 0;            ///< the exact value, rounded to binary64
  double low = 0, high = 0;        ///< everything the model can produce there, in any accumulation order
  std::string why;                 ///< one sentence
  std::string further_input = {};  ///< on which it was excluded; empty: on the case's own data
  ExcludedBy by = ExcludedBy::kOther;
};

/// Whose format a label names: that of sums, or that of an op's elementary steps where these sum nothing.
enum class FormatOfWhat { kNothing, kSums, kSteps };
/// nothing sums steps
std::string_view Name(FormatOfWhat what);

/// Elements that share a model which the rest does not.
struct Region {
  std::string where;  ///< "columns 256 to 299", "row 3", "elsewhere"
  std::string label;
};

/// Facets that give the bits of exact sums of exact products by construction: the output rounding is the same rounding.
struct AsExact {
  std::vector<AccSpec> acc;
  std::vector<AccSpec> acc_once;  ///< those that do in one of their orders
  std::vector<RoundSpec> prod;
  /// The value has no such step, a sum or a product: every demand on that facet is met.
  bool any_acc = false, any_prod = false;

  bool Empty() const { return acc.empty() && acc_once.empty() && prod.empty() && !any_acc && !any_prod; }
  bool operator==(const AsExact&) const = default;
};
/// In words, as reports and records have them: acc, acc_once, prod -> words, "any" alone for any; what is empty is left out.
std::map<std::string, std::vector<std::string>> WordsOf(const AsExact& as_exact);

/// The roundings of each facet in the models that explain a value, each once; empty where the facet does not apply.
struct SurvivingFacets {
  std::vector<RoundSpec> prod;
  std::vector<AccSpec> acc;
  std::vector<RoundSpec> mid, out;

  bool operator==(const SurvivingFacets&) const = default;
};

/// The words of roundings, each as `word` spells it.
std::vector<std::string> WordsOf(const std::vector<RoundSpec>& roundings,
                                 std::string (*word)(const RoundSpec&));
std::vector<std::string> WordsOf(const std::vector<AccSpec>& accumulators);
std::map<std::string, std::vector<std::string>> WordsOf(const RoundingSets& sets,
                                                        std::string (*word)(const RoundSpec&));
/// prod, acc, mid, out -> words.
std::map<std::string, std::vector<std::string>> WordsOf(const SurvivingFacets& facets);

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
  std::vector<Remark> says;     ///< what the numbers do show where no model explains them
  std::vector<Region> regions;  ///< where the elements do not share one model
  std::vector<Exclusion> excluded;
  int64_t excluded_elsewhere =
      0;  ///< recorded exclusions that are not among `excluded`: the run folder has them
  bool rests_on_likelihood = false;  ///< models is smaller than models_proved
  int64_t elements = 0, checked = 0;
  double max_ulp = 0;  ///< against the exact value, in ulps of the value's dtype
  /// Of a step judged by itself, against the exact result of its own operands, where max_ulp is of the whole program; negative: max_ulp is.
  double step_ulp = -1;
  double max_abs = 0;  ///< largest absolute error against the exact value
  /// The errors in those of float32 throughout, where they fit it and are more than twice as large as in any order tried: functions and
  /// forms of a library. Else 0.
  double beyond = 0;
  std::string beyond_of = {};  ///< which errors: "rms", "the largest", "of one element, in its own"
  /// Of a further input (harness/judge/combine.h) which no float32 sum of the bank gives, and of results that nothing explains and of which
  /// nothing but their errors is said: these in those of float32 sums in the orders tried, and of a mean's other forms, the larger of
  /// root mean squares and largest ones, where that is kNearFloat32 at most: guard bits, compensations, wide units. Else 0.
  double within = 0;
  /// Half of the results, and sixteen, err in some float32 order by more than their store does: `within` tells of the sums.
  bool within_sums = false;
  bool within_forms = false;  ///< a mean's other forms err by more than its sums do: `within` is in theirs
  /// Results that are zero, as the exact ones are, with another sign than IEEE 754 gives them. They are the right numbers: no model and
  /// no contract speaks of their signs.
  int64_t wrong_zeros = 0;
  int64_t models_tried = 0;
  std::string label;                               ///< one plain phrase
  FormatOfWhat labelled = FormatOfWhat::kNothing;  ///< whose format `label` names
  bool states_error = false;                       ///< `label` states how large the errors are
  std::vector<Remark> notes;
  SurvivingFacets facets;  ///< of `models`
  RoundingSets facets_in;  ///< of `models`, per operand
  RoundingSets cuts;       ///< of `models`, per intermediate; none included
  /// Of a further input: model of a split sum -> positions of terms that it does not show to lie in one chunk with the first one
  /// (harness/judge/chunks.h).
  std::map<std::string, std::vector<int64_t>> apart = {};
  AsExact as_exact = {};
  /// The share of the sampled results that the best order of one of `models` gives bit by bit.
  double reproduced = 0;
  /// Of a sum: how far from the exact value, at most, the orders of the plainest of `models` may lie, stored (the largest such distance
  /// of the elements looked at; absolute). 0 without a sum, or where there is no finite bound.
  double any_order = 0;
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
  /// Of one step that gives these bits by other steps than its own: those as a formula, "x * (1 / s)". Empty elsewhere.
  std::string form = {};
  /// The rule of the classifier (harness/judge/rules.h) that was the last to change which models are likely; empty without a reference.
  std::string decided_by = {};
};

}  // namespace ulpscope
