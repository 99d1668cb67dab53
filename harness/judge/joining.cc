// Joins the inputs one by one: the models that each leaves, and those that they leave together.
#include "harness/judge/joining.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/chunks.h"
#include "harness/judge/flushing.h"
#include "harness/judge/label.h"
#include "harness/model/conforming.h"
#include "harness/model/exclusion.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

bool ErrsAsFloat32(const Classification& one) { return one.within > 0 && one.within <= kAsFloat32; }

namespace {

using enum ClassificationKind;

/// Chosen: exclusions that one joined classification lists; no rule reads their number.
constexpr size_t kMostJoinedExclusions = 64;

bool HasNoModels(const Classification& one) { return IsUnknown(one.kind) || IsWrong(one.kind); }

/// The shape of a value as far as labels and facets need it, derived from one of its classifications.
ValueShape ShapeFrom(const std::string& value, const Classification& one) {
  ValueShape shape;
  shape.name = value;
  shape.has_products = !one.facets.prod.empty();
  // Steps inside an op without a sum have that facet too; the classification's own label distinguishes them.
  shape.has_steps = !one.facets.acc.empty() && one.labelled != FormatOfWhat::kSums;
  shape.reduction_length = !one.facets.acc.empty() && !shape.has_steps ? 1 : 0;
  for (const auto& [operand, words] : one.facets_in) shape.operands.push_back(operand);
  for (const auto& [cut, words] : one.cuts) shape.cut_points.push_back(cut);
  return shape;
}

/// Rounded to a number of bits before the output rounding.
bool IsProposed(const PrecisionModel& model) { return model.mid.to_bits(); }

/// Summed in a number of bits, a format that no candidate model lists.
bool SumsInBits(const PrecisionModel& model) { return model.acc.in_bits(); }

/// Such a model is proposed if no listed sum gives the case's own data.
bool HasGuardBits(const PrecisionModel& model) { return model.acc.has_guard_bits(); }

/// Sums in float32 or wider, an output rounding to nearest, and nothing else.
bool SumsWide(const PrecisionModel& model) { return IsConforming(model, Binary32(), kSumAndStore); }

bool SumsInFloat32(const PrecisionModel& model) { return SumsWide(model) && model.acc == SumsIn(Binary32()); }

/// Sums of unrounded operands in float32 or wider that are truncated, or whose output rounding is not to nearest.
bool RoundsOtherwise(const PrecisionModel& model) {
  return IsConforming(model, Binary32(), kUpToRounding) && model.acc.partial == nullptr &&
         (model.acc.rounding != Rounding::kNearestEven || model.out.rounding != Rounding::kNearestEven);
}

/// True for float32's errors, or those of a sum in a few bits more that gives it.
bool IsNearFloat32(const Classification& one) {
  return ErrsAsFloat32(one) || (one.within > 0 && std::ranges::any_of(one.models_proved, HasGuardBits));
}

/// Sums to nearest in float32 or wider, and nothing else.
bool SumsToNearest(const PrecisionModel& model) {
  const AccSpec& acc = model.acc;
  return SumsWide(model) && (acc.exact() || (acc.binary() && acc.rounding == Rounding::kNearestEven));
}

/// An auxiliary input's exclusions carry its name: their elements are not those of the case's own data.
void AddExclusions(const ProofInput& input, const std::set<PrecisionModel>& before,
                   std::vector<Exclusion>* excluded) {
  for (const Exclusion& exclusion : input.classification->excluded) {
    if (excluded->size() >= kMostJoinedExclusions) return;
    if (!before.contains(exclusion.model)) continue;
    excluded->push_back(exclusion);
    excluded->back().further_input = input.name;
    excluded->back().why = OnFurtherInput(input.name, exclusion.why);
  }
}

/// "about as large as those of float32", "0.01 times those of float32".
std::string InThoseOfFloat32(const Classification& one) {
  constexpr double kAsLarge = 0.8;  // the reciprocal of kAsFloat32: as much less as that is more
  // The number is always stated for other forms of a mean: it is another measure than the sums that a reader expects.
  const bool alike = !one.within_forms && one.within >= kAsLarge && one.within <= kAsFloat32;
  return fmt::format("{} those of float32{}",
                     alike ? "about as large as" : fmt::format("{:.2g} times", one.within),
                     one.within_forms ? " in other forms of a mean" : "");
}

/// The auxiliary inputs that no surviving sum reproduces although their errors are about float32's or smaller.
struct Unlisted {
  std::vector<std::string> inputs;
  const Classification* largest = nullptr;  ///< the input with the largest errors, in errors of float32
  const Classification* own = nullptr;      ///< the case's own data, if no listed sum reproduces it
  bool shown = true;                        ///< all of these errors are visible at the output

  bool any() const { return own != nullptr || !inputs.empty(); }
  std::string Text() const {
    std::string text;
    if (own != nullptr)
      text = fmt::format("; no listed sum gives these results, with errors {}", InThoseOfFloat32(*own));
    if (inputs.empty()) return text;
    const std::vector<std::string> first(inputs.begin(), inputs.end() - 1);
    return text + fmt::format("; no listed sum gives the auxiliary input{} {}{}, with errors {}",
                              first.empty() ? "" : "s", Join(first, ", "),
                              (first.empty() ? "" : " and ") + inputs.back(), InThoseOfFloat32(*largest));
  }
};

/// With few columns, each input shows some positions in one chunk with the first one; all inputs are split alike.
void ExcludeSplits(std::span<const ProofInput> inputs, std::set<PrecisionModel>* proved,
                   std::vector<Exclusion>* excluded) {
  std::erase_if(*proved, [&](const PrecisionModel& model) {
    std::optional<std::set<int64_t>> apart;
    std::vector<std::string> names;
    for (const ProofInput& input : inputs) {
      const auto here = input.classification->apart.find(model.Name());
      if (here == input.classification->apart.end()) continue;
      const std::set<int64_t> left(here->second.begin(), here->second.end());
      names.push_back(input.name);
      if (!apart)
        apart = left;
      else
        std::erase_if(*apart, [&](const int64_t position) { return !left.contains(position); });
    }
    if (!apart || !apart->empty()) return false;
    if (excluded->size() < kMostJoinedExclusions)
      excluded->push_back(
          {.model = model,
           .element = {},
           .why = fmt::format("on the auxiliary inputs {}: {}", Join(names, ", "), WhyOneChunk())});
    return true;
  });
}

void BecomeUnmodelled(std::string note, const ValueShape& shape, DType observed, Classification* joined) {
  joined->kind = kUnmodelled;
  joined->models.clear();
  joined->models_proved.clear();
  joined->fits = false;
  joined->rests_on_likelihood = false;
  joined->says.push_back({RemarkKind::kAuxiliary, note});
  joined->notes.push_back({RemarkKind::kAuxiliary, std::move(note)});
  ProjectFacets(shape, joined);
  SetLabel(shape, observed, ErrorsOf::kThisStep, joined);
}

/// The classification of one value without the models that auxiliary inputs exclude, one input after the other.
class Joining {
 public:
  Joining(const std::string& value, const Classification& base, DType observed,
          std::span<const ProofInput> inputs)
      : base_(base),
        observed_(observed),
        shows_(FormatOf(observed)->precision >= Binary32().precision),
        inputs_(inputs),
        joined_(base),
        shape_(ShapeFrom(value, base)),
        own_(base.models_proved.begin(), base.models_proved.end()),
        proved_(own_) {}

  /// `bits`: the most that the results of the case's own data use.
  Classification Run(int bits) {
    if (base_.kind == kUnmodelled && !BeginUnmodelled()) return base_;
    for (const ProofInput& input : inputs_) bits = std::max(bits, input.bits);
    for (const ProofInput& input : inputs_) {
      if (HasNoModels(*input.classification)) continue;
      if (auto why = Take(input, bits); !why.empty()) return Unmodelled(std::move(why));
    }
    ExcludeSplits(inputs_, &proved_, &joined_.excluded);
    if (proved_.empty())
      return Unmodelled("the auxiliary inputs exclude together all that each of them leaves");
    return Conclude();
  }

 private:
  /// The evidence from one input.
  struct Left {
    std::set<PrecisionModel> here;
    std::set<PrecisionModel> wide;  ///< among the surviving models, sums in float32 or wider
    bool none = false;              ///< none of these reproduces it, and nothing else explains it
    bool little = false;            ///< its errors are as small as theirs
    bool unlisted = false;          ///< a sum that no candidate model lists produced it
  };

  Classification Unmodelled(std::string why) {
    BecomeUnmodelled(std::move(why), shape_, observed_, &joined_);
    return joined_;
  }

  /// Starts from base data with smaller errors than any listed sum, or a mean's other forms; auxiliary inputs decide.
  bool BeginUnmodelled() {
    if (!ErrsAsFloat32(base_) || inputs_.empty() || std::ranges::none_of(own_, SumsInFloat32)) return false;
    joined_.says.clear();
    joined_.models.clear();
    std::ranges::copy_if(own_, std::back_inserter(joined_.models), SumsWide);
    joined_.fits = true;
    // Facets come from models, and the base has none: the surviving models show which facets there are.
    shape_.reduction_length = 1;
    shape_.has_products = std::ranges::any_of(own_, [](const auto& model) { return !model.prod.none(); });
    unlisted_.own = &base_;
    return true;
  }

  Left LookAt(const Classification& one) {
    Left left;
    left.here = {one.models_proved.begin(), one.models_proved.end()};
    // Behind a narrow output rounding, errors are mostly that rounding's, so only the surviving models are evidence.
    near_float32_ =
        near_float32_ &&
        (shows_ || one.within_sums ? std::ranges::any_of(left.here, SumsInFloat32) || IsNearFloat32(one)
                                   : std::ranges::any_of(left.here, SumsWide));
    if (one.within > 0) std::ranges::copy_if(proved_, std::inserter(left.wide, left.wide.end()), SumsWide);
    // A sum that rounds differently and gives this input too is an explanation if it is consistent with one value only.
    const bool explained = std::ranges::any_of(proved_, [&](const auto& model) {
      return left.here.contains(model) && !SumsWide(model) && RoundsOtherwise(model);
    });
    left.none = !left.wide.empty() && !explained &&
                std::ranges::none_of(left.wide, [&](const auto& model) { return left.here.contains(model); });
    // A class contains sums that no candidate model lists, so the failure of every listed sum is no proof against it.
    // Behind a narrow output rounding the errors are that rounding's, and the surviving models are the better evidence.
    left.little = left.none && IsNearFloat32(one);
    left.unlisted = left.little && (shows_ || one.kind == kUnmodelled);
    return left;
  }

  void NoteUnlisted(const ProofInput& input) {
    const Classification& one = *input.classification;
    unlisted_.inputs.push_back(input.name);
    if (unlisted_.largest == nullptr || one.within > unlisted_.largest->within) unlisted_.largest = &one;
    unlisted_.shown = unlisted_.shown && (shows_ || one.within_sums);
  }

  /// The reason why nothing is left; "" if something is.
  std::string Take(const ProofInput& input, int bits) {
    const Classification& one = *input.classification;
    Left left = LookAt(one);
    if (left.none && !left.little && shows_)
      return fmt::format("no listed sum gives the auxiliary input {}, with errors {}", input.name,
                         InThoseOfFloat32(one));
    if (left.unlisted) NoteUnlisted(input);
    std::set<PrecisionModel> before;
    std::ranges::set_difference(proved_, left.unlisted ? left.wide : std::set<PrecisionModel>{},
                                std::inserter(before, before.end()));
    AddExclusions(input, before, &joined_.excluded);
    if (one.kind == kUnmodelled && left.unlisted) {
      proved_ = std::move(left.wide);
      return "";
    }
    if (one.kind == kUnmodelled)
      return "no precision model explains the auxiliary input " + input.name +
             (one.says.empty() ? "" : " (" + JoinTexts(one.says) + ")");
    AddProposed(one, bits);
    KeepGiven(left);
    if (proved_.empty() && left.little) {
      NoteUnlisted(input);
      proved_ = std::move(left.wide);
    }
    if (proved_.empty())
      return "no precision model explains both the auxiliary input " + input.name +
             " and what was run before it";
    return "";
  }

  void AddProposed(const Classification& one, int bits) {
    for (const PrecisionModel& model : one.models) {
      if (!IsProposed(model) || model.mid.bits() < bits) continue;
      // With a float32 output, each auxiliary input was tested for it.
      const bool everywhere =
          observed_ != DType::kFloat32 || std::ranges::all_of(inputs_, [&](const auto& other) {
            return HasNoModels(*other.classification) || Contains(other.classification->models, model);
          });
      if (everywhere && proved_.insert(model).second) joined_.models.push_back(model);
    }
  }

  void KeepGiven(const Left& left) {
    const bool wide_here = left.unlisted || std::ranges::any_of(left.here, SumsWide);
    std::erase_if(proved_, [&](const PrecisionModel& model) {
      // Inputs without subnormal numbers do not test flushing: there, a flushing model equals the one without. Models
      // outside the candidate models were proposed for the case's own data and were not tested here.
      return !left.here.contains(model) && !left.here.contains(WithoutFlushing(model)) &&
             !IsProposed(model) && !(SumsInBits(model) && !SumsWide(model)) &&
             !(left.unlisted && left.wide.contains(model)) && !(wide_here && HasGuardBits(model));
    });
  }

  Classification Conclude() {
    // A result between several sums comes from none of them: a demand for a single one is not met, and none is more
    // likely than the others that the auxiliary inputs exclude in the same way.
    const auto as_first = [&](const PrecisionModel& model) { return model.acc == proved_.begin()->acc; };
    if (unlisted_.any() && near_float32_ && (unlisted_.own == nullptr ? unlisted_.shown : shows_) &&
        std::ranges::all_of(proved_, as_first) && std::ranges::all_of(proved_, SumsWide))
      std::ranges::copy_if(own_, std::inserter(proved_, proved_.end()), SumsWide);
    if (unlisted_.own != nullptr &&
        (!std::ranges::all_of(proved_, SumsWide) || std::ranges::all_of(proved_, as_first)))
      return base_;
    if (!unlisted_.inputs.empty() && std::ranges::all_of(proved_, as_first))
      return Unmodelled("no precision model explains the auxiliary input " + unlisted_.inputs.front());
    // One product has no more bits than its operands together, so a rounding to as many has no visible effect.
    if (observed_ == DType::kFloat32 && std::ranges::any_of(proved_, SumsToNearest)) {
      const auto added = [&](const PrecisionModel& model) {
        return IsProposed(model) && !own_.contains(model);
      };
      std::erase_if(proved_, added);
      std::erase_if(joined_.models, added);
    }
    if (proved_ == own_ && !unlisted_.any()) return joined_;
    joined_.models_proved.assign(proved_.begin(), proved_.end());
    std::erase_if(joined_.models, [&](const PrecisionModel& model) { return !proved_.contains(model); });
    if (joined_.models.empty()) {
      // The surviving models were not excluded, but explain nothing.
      std::vector<PrecisionModel> left = joined_.models_proved;
      Unmodelled("the auxiliary inputs exclude all that explains the case's own data");
      joined_.models_proved = std::move(left);
      return joined_;
    }
    joined_.rests_on_likelihood = joined_.models.size() < joined_.models_proved.size() || unlisted_.any();
    joined_.kind = joined_.models.size() == 1 ? kIdentified : kIndistinguishable;
    ProjectFacets(shape_, &joined_);
    SetLabel(shape_, observed_, ErrorsOf::kThisStep, &joined_);
    joined_.label += unlisted_.Text();
    return joined_;
  }

  const Classification& base_;
  const DType observed_;
  const bool shows_;  ///< its output is no narrower than float32
  std::span<const ProofInput> inputs_;
  Classification joined_;
  ValueShape shape_;
  const std::set<PrecisionModel> own_;
  std::set<PrecisionModel> proved_;
  Unlisted unlisted_;
  bool near_float32_ = true;  ///< on every auxiliary input, errors are as float32's or a float32 sum fits
};

}  // namespace

Classification JoinInputs(const std::string& value, const Classification& base, DType observed, int bits,
                          std::span<const ProofInput> inputs) {
  // Models of single steps do not compete with those of the whole.
  if (HasNoModels(base) || base.piece.starts_with("steps ")) return base;
  return Joining(value, base, observed, inputs).Run(bits);
}

}  // namespace ulpscope
