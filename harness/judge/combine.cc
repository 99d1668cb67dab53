// Joining companions.
#include "harness/judge/combine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/chunks.h"
#include "harness/judge/contract.h"
#include "harness/judge/flushing.h"
#include "harness/judge/label.h"
#include "harness/num/float_format.h"
#include "harness/num/tensor_data.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

using enum ClassificationKind;

constexpr size_t kMostJoinedExclusions = 64;

bool HasNoModels(const Classification& one) {
  return one.kind == kNoReference || one.kind == kNotFloating || one.kind == kNotJudged || IsWrong(one.kind);
}

/// The shape of a value as far as labels and facets ask for it, from a classification of it.
ValueShape ShapeFrom(const std::string& value, const Classification& one) {
  ValueShape shape;
  shape.name = value;
  const auto applies = [&](const char* facet) {
    const auto words = one.facets.find(facet);
    return words != one.facets.end() && !words->second.empty();
  };
  shape.has_products = applies("prod");
  // Steps inside an op without a sum have that facet too: its own label tells which it is.
  shape.has_steps = applies("acc") && one.label.find("accumulated in") == std::string::npos;
  shape.reduction_length = applies("acc") && !shape.has_steps ? 1 : 0;
  for (const auto& [operand, words] : one.facets_in) shape.operands.push_back(operand);
  for (const auto& [cut, words] : one.cuts) shape.cut_points.push_back(cut);
  return shape;
}

/// Rounded to so many bits on its way to the store.
bool IsProposed(const PrecisionModel& model) { return model.mid.starts_with('p'); }

/// A sum in so many bits, as no bank lists.
bool SumsInBits(const PrecisionModel& model) { return model.acc.starts_with('p'); }

/// It is looked for where no listed sum gives the case's own data.
bool HasGuardBits(const PrecisionModel& model) {
  const auto acc = ParseAcc(model.acc);
  return acc && acc->has_guard_bits();
}

/// Sums in float32 or wider, a store to nearest, and nothing else.
bool SumsWide(const PrecisionModel& model) {
  const auto acc = ParseAcc(model.acc);
  const auto prod = ParseProd(model.prod);
  const auto out = ParseOut(model.out);
  return model.in.empty() && model.mid == "none" && model.cuts.empty() && acc && acc->wide() && prod &&
         prod->bits() >= Binary32().precision && out && out->rounding == Rounding::kNearestEven;
}

bool SumsInFloat32(const PrecisionModel& model) { return SumsWide(model) && model.acc == "float32"; }

/// Float32 or wider sums of operands as they are that are cut, or stored otherwise than to nearest.
bool RoundsOtherwise(const PrecisionModel& model) {
  const auto acc = ParseAcc(model.acc);
  const auto out = ParseOut(model.out);
  return model.in.empty() && model.mid == "none" && model.cuts.empty() && acc && out && acc->block == 0 &&
         acc->partial == nullptr && acc->wide() &&
         (acc->rounding != Rounding::kNearestEven || out->rounding != Rounding::kNearestEven);
}

bool ErrsAsFloat32(const Classification& one) { return one.within > 0 && one.within <= kAsFloat32; }

/// Float32's errors, or those of one of the sums in a few bits more that give it.
bool IsNearFloat32(const Classification& one) {
  return ErrsAsFloat32(one) || (one.within > 0 && std::ranges::any_of(one.models_proved, HasGuardBits));
}

/// Sums to nearest in float32 or wider, and nothing else.
bool SumsToNearest(const PrecisionModel& model) {
  const auto acc = ParseAcc(model.acc);
  return SumsWide(model) && (acc->exact() || (acc->binary() && acc->rounding == Rounding::kNearestEven));
}

int MostBits(const TensorData& results) {
  int bits = 0;
  for (int64_t i = 0; i < results.size(); ++i) {
    const double value = results.At(i);
    if (value != 0 && std::isfinite(value)) bits = std::max(bits, SignificantBits(value));
  }
  return bits;
}

/// A companion's exclusions name it: their elements are not those of the case's own data.
void AddExclusions(const ProofInput& input, const std::set<PrecisionModel>& before,
                   std::vector<Exclusion>* excluded) {
  for (const Exclusion& exclusion : input.classification->excluded) {
    if (excluded->size() >= kMostJoinedExclusions) return;
    if (!before.contains(exclusion.model)) continue;
    excluded->push_back(exclusion);
    excluded->back().why = fmt::format("on the further input {}: {}", input.name, exclusion.why);
  }
}

/// "about as large as those of float32", "0.01 times those of float32".
std::string InThoseOfFloat32(const Classification& one) {
  constexpr double kAsLarge = 0.8;
  // Of other forms the number is told in any case: it is another measure than the sums of a reader.
  const bool alike = !one.within_forms && one.within >= kAsLarge && one.within <= kAsFloat32;
  return fmt::format("{} those of float32{}",
                     alike ? "about as large as" : fmt::format("{:.2g} times", one.within),
                     one.within_forms ? " in other forms of a mean" : "");
}

/// Further inputs that none of the sums that are left gives, and that err about as float32 sums do, or less.
struct Unlisted {
  std::vector<std::string> inputs;
  const Classification* largest = nullptr;  ///< what errs most of them, in errors of float32
  const Classification* own = nullptr;      ///< of the case's own data, where no listed sum gives it
  bool shown = true;                        ///< all of these errors are seen through the store

  bool any() const { return own != nullptr || !inputs.empty(); }
  std::string Text() const {
    std::string text;
    if (own != nullptr)
      text = fmt::format("; no listed sum gives these results, with errors {}", InThoseOfFloat32(*own));
    if (inputs.empty()) return text;
    const std::vector<std::string> first(inputs.begin(), inputs.end() - 1);
    return text + fmt::format("; no listed sum gives the further input{} {}{}, with errors {}",
                              first.empty() ? "" : "s", Join(first, ", "),
                              (first.empty() ? "" : " and ") + inputs.back(), InThoseOfFloat32(*largest));
  }
};

/// Of few columns each input shows some positions to lie in one chunk with the first one; all are split alike.
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
           .why = fmt::format("on the further inputs {}: {}", Join(names, ", "), WhyOneChunk())});
    return true;
  });
}

void BecomeUnmodelled(std::string note, const ValueShape& shape, DType observed, Classification* joined) {
  joined->kind = kUnmodelled;
  joined->models.clear();
  joined->models_proved.clear();
  joined->fits = false;
  joined->rests_on_likelihood = false;
  joined->says.push_back(note);
  joined->notes.push_back(std::move(note));
  ProjectFacets(shape, joined);
  joined->label = LabelOf(shape, observed, *joined);
}

}  // namespace

std::string WhyItProvesNothing(const Observation& observation, const std::string& taint) {
  if (observation.outcome.kind != OutcomeKind::kCompleted)
    return std::string(Name(observation.outcome.kind)) +
           (observation.outcome.error_class.empty() ? "" : " " + observation.outcome.error_class);
  if (!taint.empty()) return taint;
  if (!observation.nondeterministic.empty()) return "repeated runs differ";
  return "";
}

namespace {

Classification CombineWith(const std::string& value, const Classification& base, DType observed, int bits,
                           std::span<const ProofInput> inputs) {
  // Models of single steps are no rivals of those of the whole.
  if (HasNoModels(base) || base.piece.starts_with("steps ")) return base;
  Classification joined = base;
  ValueShape shape = ShapeFrom(value, base);
  const std::set<PrecisionModel> own(base.models_proved.begin(), base.models_proved.end());
  std::set<PrecisionModel> proved = own;
  Unlisted unlisted;
  if (base.kind == kUnmodelled) {
    // Nearer to the exact values than any listed sum comes, or as far as a mean's other forms: what else there is further inputs tell.
    if (!ErrsAsFloat32(base) || inputs.empty() || std::ranges::none_of(own, SumsInFloat32)) return base;
    joined.says.clear();
    joined.models.clear();
    std::ranges::copy_if(own, std::back_inserter(joined.models), SumsWide);
    joined.fits = true;
    // Facets are those of models, of which it has none: what is left says which there are.
    shape.reduction_length = 1;
    shape.has_products = std::ranges::any_of(own, [](const auto& model) { return model.prod != "exact"; });
    unlisted.own = &base;
  }
  const bool shows = FormatOf(observed)->precision >= Binary32().precision;
  bool near_float32 = true;  ///< on every further input it errs as float32 sums do, or is one
  for (const ProofInput& input : inputs) bits = std::max(bits, input.bits);
  for (const ProofInput& input : inputs) {
    const Classification& one = *input.classification;
    if (HasNoModels(one)) continue;
    const std::set<PrecisionModel> here(one.models_proved.begin(), one.models_proved.end());
    // Behind a narrow store errors are mostly the store's, and only what is left tells.
    near_float32 = near_float32 &&
                   (shows || one.within_sums ? std::ranges::any_of(here, SumsInFloat32) || IsNearFloat32(one)
                                             : std::ranges::any_of(here, SumsWide));
    std::set<PrecisionModel> wide;
    if (one.within > 0) std::ranges::copy_if(proved, std::inserter(wide, wide.end()), SumsWide);
    // What stores or adds otherwise and gives this input too is an explanation, where all that it gives is one value.
    const bool explained = std::ranges::any_of(proved, [&](const auto& model) {
      return here.contains(model) && !SumsWide(model) && RoundsOtherwise(model);
    });
    const bool none_here = !wide.empty() && !explained && std::ranges::none_of(wide, [&](const auto& model) {
      return here.contains(model);
    });
    // A class holds sums that no bank lists: what is left beside none of the listed ones is no proof against it. Behind a narrow store
    // errors are the store's, and what is left tells more than they do.
    const bool little = none_here && IsNearFloat32(one);
    const bool unlisted_here = little && (shows || one.kind == kUnmodelled);
    if (none_here && !little && shows) {
      BecomeUnmodelled(fmt::format("no listed sum gives the further input {}, with errors {}", input.name,
                                   InThoseOfFloat32(one)),
                       shape, observed, &joined);
      return joined;
    }
    const auto note_unlisted = [&] {
      unlisted.inputs.push_back(input.name);
      if (unlisted.largest == nullptr || one.within > unlisted.largest->within) unlisted.largest = &one;
      unlisted.shown = unlisted.shown && (shows || one.within_sums);
    };
    if (unlisted_here) note_unlisted();
    std::set<PrecisionModel> before;
    std::ranges::set_difference(proved, unlisted_here ? wide : std::set<PrecisionModel>{},
                                std::inserter(before, before.end()));
    AddExclusions(input, before, &joined.excluded);
    if (one.kind == kUnmodelled && unlisted_here) {
      proved = std::move(wide);
      continue;
    }
    if (one.kind == kUnmodelled) {
      BecomeUnmodelled("no precision model explains the further input " + input.name +
                           (one.says.empty() ? "" : " (" + Join(one.says, "; ") + ")"),
                       shape, observed, &joined);
      return joined;
    }
    for (const PrecisionModel& model : one.models) {
      if (!IsProposed(model) || ParseMid(model.mid)->bits() < bits) continue;
      // Behind a float32 store each further input was asked about it.
      const bool everywhere =
          observed != DType::kFloat32 || std::ranges::all_of(inputs, [&](const auto& other) {
            return HasNoModels(*other.classification) || Contains(other.classification->models, model);
          });
      if (everywhere && proved.insert(model).second) joined.models.push_back(model);
    }
    const bool wide_here = unlisted_here || std::ranges::any_of(here, SumsWide);
    std::erase_if(proved, [&](const PrecisionModel& model) {
      // Inputs without subnormal numbers are not asked about flushing: there such a model is the one without it. What no bank lists
      // was proposed for the case's own data, and was not asked here.
      return !here.contains(model) && !here.contains(WithoutFlushing(model)) && !IsProposed(model) &&
             !(SumsInBits(model) && !SumsWide(model)) && !(unlisted_here && wide.contains(model)) &&
             !(wide_here && HasGuardBits(model));
    });
    if (proved.empty() && little) {
      note_unlisted();
      proved = std::move(wide);
    }
    if (proved.empty()) {
      BecomeUnmodelled(
          "no precision model explains both the further input " + input.name + " and what was run before it",
          shape, observed, &joined);
      return joined;
    }
  }
  ExcludeSplits(inputs, &proved, &joined.excluded);
  if (proved.empty()) {
    BecomeUnmodelled("the further inputs exclude together all that each of them leaves", shape, observed,
                     &joined);
    return joined;
  }
  // What lies between several sums is none of them: a demand for one alone is not met, nor is one of them more than the others that
  // further inputs exclude as they do it.
  const auto as_first = [&](const PrecisionModel& model) { return model.acc == proved.begin()->acc; };
  if (unlisted.any() && near_float32 && (unlisted.own == nullptr ? unlisted.shown : shows) &&
      std::ranges::all_of(proved, as_first) && std::ranges::all_of(proved, SumsWide))
    std::ranges::copy_if(own, std::inserter(proved, proved.end()), SumsWide);
  if (unlisted.own != nullptr &&
      (!std::ranges::all_of(proved, SumsWide) || std::ranges::all_of(proved, as_first)))
    return base;
  if (!unlisted.inputs.empty() && std::ranges::all_of(proved, as_first)) {
    BecomeUnmodelled("no precision model explains the further input " + unlisted.inputs.front(), shape,
                     observed, &joined);
    return joined;
  }
  // One product has no more bits than its operands have together: what a rounding to as many leaves is seen nowhere.
  if (observed == DType::kFloat32 && std::ranges::any_of(proved, SumsToNearest)) {
    const auto added = [&](const PrecisionModel& model) { return IsProposed(model) && !own.contains(model); };
    std::erase_if(proved, added);
    std::erase_if(joined.models, added);
  }
  if (proved == own && !unlisted.any()) return joined;
  joined.models_proved.assign(proved.begin(), proved.end());
  std::erase_if(joined.models, [&](const PrecisionModel& model) { return !proved.contains(model); });
  if (joined.models.empty()) {
    // What is left was not excluded, and explains nothing.
    std::vector<PrecisionModel> left = joined.models_proved;
    BecomeUnmodelled("the further inputs exclude all that explains the case's own data", shape, observed,
                     &joined);
    joined.models_proved = std::move(left);
    return joined;
  }
  joined.rests_on_likelihood = joined.models.size() < joined.models_proved.size() || unlisted.any();
  joined.kind = joined.models.size() == 1 ? kIdentified : kIndistinguishable;
  ProjectFacets(shape, &joined);
  joined.label = LabelOf(shape, observed, joined);
  joined.label += unlisted.Text();
  return joined;
}

}  // namespace

Classification Combine(const std::string& value, const Classification& base, DType observed, int bits,
                       std::span<const ProofInput> inputs) {
  Classification joined = CombineWith(value, base, observed, bits, inputs);
  // What its own data says tells more.
  return base.kind == kUnmodelled && joined.kind == kUnmodelled ? base : joined;
}

Proof JoinCompanions(const Case& test_case, const Observation& own,
                     const std::map<std::string, Classification>& classifications,
                     std::span<const CompanionRun> companions) {
  Proof proof;
  std::map<std::string, std::vector<ProofInput>> by_value;
  for (const CompanionRun& run : companions) {
    proof.inputs.push_back({.name = run.name,
                            .left_out = run.observation == nullptr
                                            ? "not run"
                                            : WhyItProvesNothing(*run.observation, run.taint)});
    if (!proof.inputs.back().left_out.empty() || run.classifications == nullptr) continue;
    for (const auto& [value, one] : *run.classifications) {
      const auto tensor = own.values.find(value);
      const auto there = run.observation->values.find(value);
      if (tensor == own.values.end() || there == run.observation->values.end() ||
          there->second.dtype != tensor->second.dtype)
        continue;
      by_value[value].push_back({.name = run.name, .classification = &one, .bits = MostBits(there->second)});
      ValueResult alone{
          .dtype = tensor->second.dtype, .shape = tensor->second.shape, .part = {}, .classification = one};
      const ContractVerdict verdict = JudgeContract(test_case, value, alone);
      if (verdict == ContractVerdict::kViolates) proof.verdicts[value] = verdict;
      if (verdict == ContractVerdict::kUnmodelled && !ErrsAsFloat32(one))
        proof.verdicts.try_emplace(value, verdict);
    }
  }
  for (const auto& [value, one] : classifications) {
    const auto tensor = own.values.find(value);
    const DType dtype = tensor == own.values.end() ? DType::kFloat32 : tensor->second.dtype;
    const int bits = tensor == own.values.end() ? 0 : MostBits(tensor->second);
    proof.values.emplace(value, Combine(value, one, dtype, bits, by_value[value]));
  }
  return proof;
}

void ApplyProof(const Proof& proof, CaseResult* result) {
  result->proved_on = proof.inputs;
  for (const auto& [value, verdict] : proof.verdicts) {
    const auto found = result->values.find(value);
    if (found != result->values.end() && found->second.contract != ContractVerdict::kViolates)
      found->second.contract = verdict;
  }
}

}  // namespace ulpscope
