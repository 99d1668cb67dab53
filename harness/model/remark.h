// Remark: one thing that the numbers of a value show, or that a judgement of it has to state.
//
// Its kind is its subject; its text is for readers, and nothing reads it back.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ulpscope {

enum class RemarkKind {
  kChange,      ///< one change of the whole computation gives the results: "as if x were rounded to 12 bits"
  kFactor,      ///< the results are a multiple of the exact ones
  kBits,        ///< fewer significant bits than the computation leaves
  kErrors,      ///< how large the errors are, or that they are biased
  kNeighbours,  ///< each result is a neighbour of the exact value, not always the nearest one
  kPlaces,      ///< elements that stand out
  kLost,        ///< zeros, infinities and NaNs in the place of numbers
  kOrder,       ///< an order of summation that gives the results, or some of them
  kRejected,    ///< how near a rejected model comes: it shows nothing of the value
  kShare,       ///< the share of the results that a computation gives
  kAuxiliary,   ///< what auxiliary inputs exclude
  kTooManyModels,   ///< not judged end to end
  kWrong,           ///< another shape, or other whole numbers, than the program has
  kNoReference,     ///< why there is none
  kUndecided,       ///< elements that the oracle leaves undecided
  kSignsOfZeros,    ///< zeros with another sign than IEEE 754 gives them
  kModelsTried,     ///< which models were tried, where not all were
  kOfEarlierRecord  ///< of a run that was recorded without kinds
};
/// change factor bits errors neighbours places lost order rejected share auxiliary too_many_models wrong no_reference undecided
/// signs_of_zeros models_tried of_earlier_record
std::string_view Name(RemarkKind kind);
std::optional<RemarkKind> ParseRemarkKind(std::string_view name);

struct Remark {
  RemarkKind kind = RemarkKind::kErrors;
  std::string text;
  bool operator==(const Remark&) const = default;
};

std::vector<std::string> TextsOf(const std::vector<Remark>& remarks);
/// The texts in one: "a; b".
std::string JoinTexts(const std::vector<Remark>& remarks);

}  // namespace ulpscope
