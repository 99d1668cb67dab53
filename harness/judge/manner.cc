// The roundings that all models of one value have, in words.
#include "harness/judge/manner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/deed.h"
#include "harness/judge/label.h"
#include "harness/judge/parting.h"
#include "harness/judge/side.h"
#include "harness/model/conforming.h"
#include "harness/model/flat_program.h"
#include "harness/model/tensor_diff.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

/// The remark that is shown of an unexplained value: an explanation of all results comes before others.
std::string Shows(const Classification& classification) {
  const Remark* shown = nullptr;
  for (const Remark& remark : classification.says) {
    if (remark.kind == RemarkKind::kRejected) continue;
    const bool explains = remark.kind == RemarkKind::kChange;
    if (shown == nullptr || (explains && shown->kind != RemarkKind::kChange)) shown = &remark;
  }
  return shown == nullptr ? "" : shown->text;
}

/// How far the results are from the exact values, if nothing else is known about them.
std::string HowFar(const Classification& classification) {
  // Larger ulp counts mostly belong to results near zero, where the absolute error is more informative.
  constexpr double kFew = 64;
  const double ulp = classification.max_ulp, absolute = classification.max_abs;
  const std::string units = ulp < kMostTellingUlp ? Ulps(ulp) + " ulp" : "",
                    size = ulp >= kFew && std::isfinite(absolute) ? fmt::format("{:.2g}", absolute) : "";
  if (units.empty() && size.empty()) return "";
  return fmt::format("up to {}{}{} from the exact value", units, units.empty() || size.empty() ? "" : " and ",
                     size);
}

/// "p1, p2 and p3 rounded to bfloat16": if the format is the value's own, the rounding was that of an intermediate.
Manner RoundedOnTheWay(const std::string& value, const Classification& classification,
                       const std::string& format) {
  std::vector<std::string> steps;
  for (const auto& [cut, roundings] : classification.cuts) {
    if (WordsOf(roundings, MidWord) == Words{format} && cut != value && !IsInside(value, cut))
      steps.push_back(cut);
  }
  const bool inside = steps.empty() && HasStepsInside(value, classification);
  const std::string what = !steps.empty() ? JoinCode(steps)
                           : inside       ? "at least one of its steps"
                                          : "at least one intermediate";
  return {.text = fmt::format("{} rounded to {}", what, format), .names_inside = inside};
}

/// "with 0.998 rounded to bfloat16, or y rounded towards zero": rounding a number just above a narrow one has the same
/// effect as truncating its product. Empty if other models are left too.
std::string NumberOrStore(const Case& test_case, const std::string& value,
                          const Classification& classification) {
  std::string operand;
  RoundSpec number;
  bool cut = false;
  for (const PrecisionModel& model : classification.models) {
    if (model.out.rounding == Rounding::kTowardZero) {
      cut = true;
      continue;
    }
    const auto narrow = std::ranges::find_if(model.in, [](const auto& in) {
      return in.first.starts_with("scalar.") && in.second.bits() < Binary32().precision;
    });
    if (narrow == model.in.end() ||
        (!number.none() && (operand != narrow->first || number != narrow->second)))
      return "";
    operand = narrow->first;
    number = narrow->second;
  }
  if (!cut || number.none()) return "";
  return fmt::format("with {} rounded to {}, or {} rounded towards zero",
                     NumberPhrase(test_case, operand, value), Formats({number}, kOfOperands), Code(value));
}

/// "with y rounded to bfloat16, sums in bfloat16": the properties that all models share; empty if there are none.
Manner DescribeRoundings(const Case& test_case, const std::string& value, const ValueResult& result,
                         WideSums wide_sums) {
  const Classification& classification = result.classification;
  std::vector<std::string> parts;
  for (const auto& [operand, reads] : classification.facets_in) {
    if (reads.size() == 1 && !reads[0].none())
      parts.push_back(fmt::format("{} rounded to {}", NumberPhrase(test_case, operand, value),
                                  Formats(reads, kOfOperands)));
  }
  const SurvivingFacets& facets = classification.facets;
  if (facets.prod.size() == 1 && !facets.prod[0].none())
    parts.push_back("products in " + ProdWord(facets.prod[0]));
  const InsideSteps inside = DescribeInside(value, classification);
  // A split float32 operand can compensate for a wider sum: models with unrounded operands have priority.
  std::vector<AccSpec> sums;
  for (const PrecisionModel& model : classification.models) {
    const bool as_is = std::ranges::all_of(model.in, [](const auto& in) { return in.second.none(); });
    if (as_is && !Contains(sums, model.acc)) sums.push_back(model.acc);
  }
  if (sums.empty() || facets.acc.empty()) sums = facets.acc;
  const std::string acc = JoinAccumulators(sums);
  const bool told =
      wide_sums == WideSums::kTold || acc != JoinAccumulators({SumsIn(Binary32()), SumsIn(Binary64())});
  const bool exact = sums.size() == 1 && sums[0].exact();
  bool names_inside = !inside.text.empty();
  if (!acc.empty() && !exact && acc != OpenFormat() && !inside.all && told) {
    const bool steps = HasStepsInside(value, classification), sums_inside = SumsInside(classification);
    parts.push_back((!steps ? "sums in " : sums_inside ? "its sums in " : "each of its steps in ") + acc);
    names_inside = names_inside || (steps && sums_inside);
  }
  if (!inside.text.empty()) parts.push_back(inside.text);
  const auto& mid = facets.mid;
  if (mid.size() == 1 && !mid[0].none() && mid[0].format != inside.coarsest) {
    const std::string format = MidWord(mid[0]);
    if (format == Name(result.dtype)) {
      const Manner rounded = RoundedOnTheWay(value, classification, format);
      parts.push_back(rounded.text);
      names_inside = names_inside || rounded.names_inside;
    } else {
      parts.push_back(
          fmt::format("{} rounded to {} before its {} output", Code(value), format, Name(result.dtype)));
    }
  }
  if (parts.empty()) return {};
  return {.text = "with " + Join(parts, ", "), .names_inside = names_inside};
}

}  // namespace

std::string InParentheses(const std::string& text) { return text.empty() ? "" : " (" + text + ")"; }

std::string ShowsOrHowFar(const Classification& classification) {
  const std::string shows = Shows(classification);
  return shows.empty() ? HowFar(classification) : shows;
}

Manner DescribeManner(const Case& test_case, const std::string& value, const ValueResult& result,
                      WideSums wide_sums) {
  const Classification& classification = result.classification;
  if (classification.kind == ClassificationKind::kUnmodelled) {
    return {.text = "in a way that is not explained" + InParentheses(ShowsOrHowFar(classification))};
  }
  if (Manner roundings = DescribeRoundings(test_case, value, result, wide_sums); !roundings.text.empty())
    return roundings;
  // A program value that is not rounded as an intermediate deviates from the expected computation.
  std::vector<std::string> kept;
  for (const auto& [cut, roundings] : classification.cuts) {
    if (cut != value && FindStep(test_case.program, cut) != nullptr && IsUnrounded(roundings))
      kept.push_back(cut);
  }
  if (!kept.empty()) return {.text = "without rounding " + JoinCode(kept)};
  if (classification.models.size() < 2) return {.text = "with one rounding"};
  const auto as_written = [](const PrecisionModel& model) {
    return IsConforming(model, Binary32(), kWritten);
  };
  if (std::ranges::any_of(classification.models, as_written))
    return {.text = "as expected, as far as these inputs show"};
  if (std::string either = NumberOrStore(test_case, value, classification); !either.empty())
    return {.text = std::move(either)};
  const std::string narrow = NarrowInEach(value, classification);
  if (narrow.empty()) return {.text = "with roundings that these inputs do not distinguish"};
  Manner rounded = RoundedOnTheWay(value, classification, narrow);
  rounded.text = "with " + rounded.text;
  return rounded;
}

}  // namespace ulpscope
