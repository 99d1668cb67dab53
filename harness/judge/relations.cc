// Finds the differences between two participants of one case.
#include "harness/judge/relations.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/base/find.h"
#include "harness/judge/casts.h"
#include "harness/judge/parting.h"
#include "harness/model/conforming.h"
#include "harness/model/flat_program.h"
#include "harness/model/tensor_diff.h"
#include "harness/num/float_format.h"

namespace ulpscope {
namespace {

bool TakesPart(const CaseResult& result) {
  if (!RanToAnAnswer(result)) return false;
  const OutcomeKind kind = result.outcome.kind;
  return kind == OutcomeKind::kCompleted || kind == OutcomeKind::kRaised || kind == OutcomeKind::kCrashed;
}

bool NoneInBoth(const std::vector<PrecisionModel>& a, const std::vector<PrecisionModel>& b) {
  return std::ranges::none_of(a, [&](const PrecisionModel& model) { return Contains(b, model); });
}

/// The model sums in float32 or wider, and rounds nothing else to less.
bool IsWide(const PrecisionModel& model) { return IsConforming(model, Binary32(), kUpToStore); }

/// Every model does. A value that nothing explains has none, and is not known to.
bool SumsWide(const Classification& each) {
  return !each.models.empty() && std::ranges::all_of(each.models, IsWide);
}

/// True if wide sums may explain `one` and reproduce `other` in no order: one narrow format in two orders is less
/// likely.
bool OneMayBeWideAlone(const Classification& one, const Classification& other) {
  return std::ranges::any_of(one.models, IsWide) && !other.models_proved.empty() &&
         std::ranges::none_of(other.models_proved, IsWide) && std::ranges::none_of(other.models, IsWide);
}

/// True if the two have no word in common in some facet.
bool FacetParts(const Classification& a, const Classification& b) {
  return Disjoint(a.facets.prod, b.facets.prod) || Disjoint(a.facets.acc, b.facets.acc) ||
         Disjoint(a.facets.mid, b.facets.mid) || Disjoint(a.facets.out, b.facets.out);
}

/// Whether two classifications of one value in one dtype exclude each other.
Basis CompareClasses(const Classification& a, const Classification& b) {
  using enum ClassificationKind;
  const bool unmodelled_a = a.kind == kUnmodelled;
  const bool unmodelled_b = b.kind == kUnmodelled;
  if (!(HasModels(a.kind) || unmodelled_a) || !(HasModels(b.kind) || unmodelled_b)) return Basis::kSame;
  if (unmodelled_a && unmodelled_b)
    return Basis::kSame;  // nothing is known of either; the bits are compared as `value`
  // A copy of a stored value is exact, however it is computed; the other side read the value before it was stored.
  if (FindOtherRead(a, b)) return Basis::kLikely;
  if (!unmodelled_a && !unmodelled_b && (a.kind == kExactOnly || b.kind == kExactOnly)) return Basis::kSame;
  if (a.piece != b.piece) return Basis::kSame;
  // If only a few models were tested, the surviving ones are likely, and the others are not excluded.
  const auto few_tried = [](const Classification& each) {
    return each.rests_on_likelihood && each.models.size() >= each.models_proved.size();
  };
  if (NoneInBoth(a.models_proved, b.models_proved) && !few_tried(a) && !few_tried(b)) return Basis::kProved;
  if (!NoneInBoth(a.models, b.models)) return Basis::kSame;
  // If all sums are in float32 or wider, which of them is likely is reported only if a facet differs.
  return SumsWide(a) && SumsWide(b) && !FacetParts(a, b) ? Basis::kSame : Basis::kLikely;
}

}  // namespace

Relations::Relations(const Case& test_case, std::span<const Participant> participants, JudgedAs judged,
                     const std::set<std::string>& known, const std::set<std::string>& observed)
    : case_(test_case), observed_(observed) {
  if (judged == JudgedAs::kStepByStep) NoteOperands(test_case.program);
  for (const Participant& participant : participants) {
    if (!TakesPart(*participant.result)) continue;
    members_.push_back(participant);
    known_.push_back(known.contains(participant.result->backend));
  }
  for (const Participant& member : members_) {
    for (const auto& value : member.result->value_order) AddName(value);
  }
  for (const Participant& member : members_) {
    for (const auto& [name, text] : member.result->observations) {
      if (name.ends_with("_dtype")) AddName(name);
    }
  }
}

void Relations::AddName(const std::string& name) {
  if (!Contains(names_, name)) names_.push_back(name);
}

bool Relations::Completed(size_t i) const {
  return members_[i].result->outcome.kind == OutcomeKind::kCompleted;
}

const ValueResult* Relations::FindValue(size_t i, const std::string& name) const {
  const auto& values = members_[i].result->values;
  const auto value = values.find(name);
  return value == values.end() ? nullptr : &value->second;
}

const TensorData* Relations::FindTensor(size_t i, const std::string& name) const {
  if (members_[i].observation == nullptr) return nullptr;
  const auto& values = members_[i].observation->values;
  const auto value = values.find(name);
  return value == values.end() ? nullptr : &value->second;
}

std::string Relations::DtypeOf(size_t i, const std::string& name) const {
  if (const ValueResult* value = FindValue(i, name)) return std::string(Name(value->dtype));
  const auto& observations = members_[i].result->observations;
  const auto observation = observations.find(name);
  return observation == observations.end() ? "none" : observation->second;
}

bool Relations::ShapesDiffer(size_t i, size_t j, const std::string& name) const {
  const ValueResult* a = FindValue(i, name);
  const ValueResult* b = FindValue(j, name);
  return a != nullptr && b != nullptr && a->shape != b->shape;
}

std::string Relations::TypeOf(size_t i, size_t j, const std::string& name) const {
  if (!ShapesDiffer(i, j, name)) return DtypeOf(i, name);
  const ValueResult* value = FindValue(i, name);
  return Describe(value->dtype, value->shape);
}

const TensorDifference* Relations::Difference(size_t i, size_t j, const std::string& name) const {
  const TensorData* a = FindTensor(i, name);
  const TensorData* b = FindTensor(j, name);
  if (a == nullptr || b == nullptr || a->dtype != b->dtype || a->shape != b->shape) return nullptr;
  const auto [entry, inserted] = differences_.try_emplace({i, j, name});
  if (inserted) entry->second = CompareTensors(*a, *b);
  return &entry->second;
}

bool Relations::Nondeterministic(size_t i, const std::string& name) const {
  return members_[i].observation != nullptr && members_[i].observation->nondeterministic.contains(name);
}

Parts Relations::OutcomeParts(size_t i, size_t j) const {
  if (members_[i].result->outcome.kind == members_[j].result->outcome.kind) return {};
  return {Part{.value = 0, .basis = Basis::kProved}};
}

Parts Relations::AtEachValue(size_t i, size_t j, ValueRelation relation) const {
  Parts parts;
  if (!Completed(i) || !Completed(j)) return parts;
  for (size_t v = 0; v < names_.size(); ++v) {
    const Basis basis = (this->*relation)(i, j, names_[v]);
    if (basis != Basis::kSame) parts.push_back({.value = v, .basis = basis});
  }
  return parts;
}

bool Relations::HasNoSuchThing(size_t i, const std::string& name) const {
  return FindValue(i, name) == nullptr && name.ends_with("_dtype") && DtypeOf(i, name) == "none";
}

Basis Relations::PartInDtype(size_t i, size_t j, const std::string& name) const {
  if (HasNoSuchThing(i, name) || HasNoSuchThing(j, name)) return Basis::kSame;
  return DtypeOf(i, name) == DtypeOf(j, name) && !ShapesDiffer(i, j, name) ? Basis::kSame : Basis::kProved;
}

Basis Relations::PartInPrecision(size_t i, size_t j, const std::string& name) const {
  const ValueResult* a = FindValue(i, name);
  const ValueResult* b = FindValue(j, name);
  if (a == nullptr || b == nullptr || a->dtype != b->dtype || !IsFloating(a->dtype)) return Basis::kSame;
  if (const auto* difference = Difference(i, j, name); difference != nullptr && difference->Same())
    return Basis::kSame;
  return CompareClasses(a->classification, b->classification);
}

void Relations::NoteOperands(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    NoteOperands(step.steps);
    if (IsArrangement(step)) views_.insert(step.as);
    for (const Operand& operand : step.of) {
      if (!operand.IsScalar()) operands_[step.as].push_back(operand.name);
    }
  }
}

bool Relations::Differs(size_t i, size_t j, const std::string& name) const {
  const TensorDifference* difference = Difference(i, j, name);
  return difference != nullptr && !difference->Same();
}

bool Relations::Inherited(size_t i, size_t j, const std::string& name) const {
  const auto operands = operands_.find(name);
  if (operands == operands_.end()) return false;
  return std::ranges::any_of(operands->second,
                             [&](const std::string& operand) { return Differs(i, j, operand); });
}

bool Relations::Flushes(size_t i, size_t j, const std::string& name) const {
  const TensorData *a = FindTensor(i, name), *b = FindTensor(j, name);
  if (a == nullptr || b == nullptr || a->dtype != b->dtype || a->shape != b->shape) return false;
  const Flushing flushing = FindFlushing(*a, *b);
  return flushing.alone && (flushing.left || flushing.right);
}

bool Relations::SumsAlone(const Classification& classification) {
  return !classification.facets.acc.empty() && classification.cuts.empty() &&
         classification.labelled == FormatOfWhat::kSums;
}

Basis Relations::PartInOrder(size_t i, size_t j, const std::string& name) const {
  if (!SharesOneModel(i, j, name)) return Basis::kSame;
  const Classification &a = FindValue(i, name)->classification, &b = FindValue(j, name)->classification;
  if (!SumsAlone(a) || !SumsAlone(b) || !IsWithin(i, j, name, OrderBound(i, j, name))) return Basis::kSame;
  // Which of several models gives the bits in one of its orders is not kept: one alone is known to.
  const auto given = [](const Classification& one) {
    return one.models.size() == 1 && one.reproduced == 1 && one.checked == one.elements;
  };
  return given(a) && given(b) && a.models == b.models ? Basis::kProved : Basis::kLikely;
}

Basis Relations::PartInBits(size_t i, size_t j, const std::string& name) const {
  if (!SharesOneModel(i, j, name)) return Basis::kSame;
  // Two sums have an order to differ by, with a bound of its own.
  if (SumsAlone(FindValue(i, name)->classification) && SumsAlone(FindValue(j, name)->classification))
    return Basis::kSame;
  return IsWithin(i, j, name, LastBitsBound(i, name)) ? Basis::kLikely : Basis::kSame;
}

bool Relations::IsWithin(size_t i, size_t j, const std::string& name, double bound) const {
  const TensorDifference* difference = Difference(i, j, name);
  return difference != nullptr && difference->largest <= bound * difference->scale;
}

double Relations::OrderBound(size_t i, size_t j, const std::string& name) const {
  const Classification &a = FindValue(i, name)->classification, &b = FindValue(j, name)->classification;
  const TensorDifference* difference = Difference(i, j, name);
  if (difference == nullptr || difference->scale == 0) return 0;
  return 2 * std::min(a.any_order, b.any_order) / difference->scale;
}

double Relations::LastBitsBound(size_t i, const std::string& name) const {
  const FloatFormat* format = FormatOf(FindValue(i, name)->dtype);
  if (format == nullptr) return 0;
  constexpr int kWide = 8, kNarrow = 1;  // derived: see the declaration
  const int units = format->precision > Binary16().precision ? kWide : kNarrow;
  return std::ldexp(units, 1 - format->precision);
}

bool Relations::BothHold(const Classification& a, const Classification& b) {
  if (!NoneInBoth(a.models, b.models)) return true;
  // Hard evidence alone decides whether one format holds two sums that are both wide.
  return SumsWide(a) && SumsWide(b) && std::ranges::any_of(a.models_proved, [&](const PrecisionModel& model) {
           return IsWide(model) && Contains(b.models_proved, model);
         });
}

bool Relations::MayBeInherited(const Classification& classification) const {
  return operands_.empty() && !classification.piece.empty() && !classification.piece.starts_with("steps ");
}

bool Relations::SharesOneModel(size_t i, size_t j, const std::string& name) const {
  if (Inherited(i, j, name) || Flushes(i, j, name)) return false;
  const ValueResult* a = FindValue(i, name);
  const ValueResult* b = FindValue(j, name);
  if (a == nullptr || b == nullptr || !HasModels(a->classification.kind) ||
      !HasModels(b->classification.kind) || a->classification.piece != b->classification.piece ||
      MayBeInherited(a->classification))
    return false;
  if (PartInPrecision(i, j, name) != Basis::kSame || Nondeterministic(i, name) || Nondeterministic(j, name))
    return false;
  const TensorDifference* difference = Difference(i, j, name);
  const Classification &left = a->classification, &right = b->classification;
  return difference != nullptr && difference->number > 0 && BothHold(left, right) &&
         !OneMayBeWideAlone(left, right) && !OneMayBeWideAlone(right, left);
}

bool Relations::IsUnexplained(size_t i, const std::string& name) const {
  const ValueResult* value = FindValue(i, name);
  return value != nullptr && value->classification.kind == ClassificationKind::kUnmodelled;
}

size_t Relations::FirstUnexplainedLike(size_t i, const std::string& name) const {
  for (size_t first = 0; first < i; ++first) {
    const TensorDifference* difference = Difference(first, i, name);
    if (IsUnexplained(first, name) && difference != nullptr && difference->Same() &&
        !Inherited(first, i, name))
      return first;
  }
  return i;
}

Basis Relations::PartUnexplained(size_t i, size_t j, const std::string& name) const {
  return IsUnexplained(i, name) && IsUnexplained(j, name) && Differs(i, j, name) ? Basis::kProved
                                                                                 : Basis::kSame;
}

Basis Relations::PartInValue(size_t i, size_t j, const std::string& name) const {
  const TensorDifference* difference = Difference(i, j, name);
  if (difference == nullptr || difference->number == 0 || Inherited(i, j, name)) return Basis::kSame;
  if (FindValue(i, name) == nullptr || FindValue(j, name) == nullptr) return Basis::kSame;
  if (Nondeterministic(i, name) || Nondeterministic(j, name)) return Basis::kSame;
  const bool is_told = PartInPrecision(i, j, name) != Basis::kSame ||
                       PartInOrder(i, j, name) != Basis::kSame || PartInBits(i, j, name) != Basis::kSame;
  return is_told ? Basis::kSame : Basis::kProved;
}

Basis Relations::PartInCarried(size_t i, size_t j, const std::string& name) const {
  if (!observed_.contains(name) || !Inherited(i, j, name)) return Basis::kSame;
  const TensorDifference* difference = Difference(i, j, name);
  if (difference == nullptr || difference->Same()) return Basis::kSame;
  const bool is_told =
      PartInPrecision(i, j, name) != Basis::kSame || PartInSpecial(i, j, name) != Basis::kSame;
  return is_told ? Basis::kSame : Basis::kProved;
}

bool Relations::InheritedInKind(size_t i, size_t j, const std::string& name) const {
  const auto operands = operands_.find(name);
  if (operands == operands_.end()) return false;
  return std::ranges::any_of(operands->second, [&](const std::string& operand) {
    const TensorDifference* difference = Difference(i, j, operand);
    return difference != nullptr && difference->one_finite > 0;
  });
}

Basis Relations::PartInSpecial(size_t i, size_t j, const std::string& name) const {
  const TensorDifference* difference = Difference(i, j, name);
  if (difference == nullptr || difference->special == 0) return Basis::kSame;
  const bool inherited = difference->one_finite > 0 ? InheritedInKind(i, j, name) : Inherited(i, j, name);
  return inherited ? Basis::kSame : Basis::kProved;
}

bool Relations::MakesInfinities(const Step& step) {
  static const std::set<std::string_view> kDivide{"div", "reciprocal", "rsqrt", "pow", "addcdiv"};
  const std::string& op = step.op;
  const auto infinite = [](const Attr& attr) {
    const auto number = attr.Number();
    return number && !std::isfinite(*number);
  };
  return kDivide.contains(op) || op.starts_with("log") || op.ends_with("_norm") || op.ends_with("_loss") ||
         op.find("entropy") != op.npos || op.find("kl_") != op.npos || op.find("::") != op.npos ||
         op.find('.') != op.npos ||
         std::ranges::any_of(
             step.of, [&](const Operand& each) { return each.IsScalar() && infinite(*each.scalar); }) ||
         std::ranges::any_of(step.attrs, [&](const auto& each) { return infinite(each.second); });
}

bool Relations::GrowsAlone(const std::string& name) const {
  std::set<std::string> seen;
  std::vector<std::string> open{name};
  while (!open.empty()) {
    const std::string value = open.back();
    open.pop_back();
    if (!seen.insert(value).second) continue;
    const Step* step = FindStep(case_.program, value);
    if (step == nullptr && value != name) continue;  // a tensor of the case
    if (step == nullptr || MakesInfinities(*step)) return false;
    for (const Operand& operand : step->of) {
      if (!operand.IsScalar()) open.push_back(operand.name);
    }
  }
  return true;
}

Parts Relations::CastParts(size_t i, size_t j) const {
  if (!Completed(i) || !Completed(j) || StageThatDiffers(*members_[i].result, *members_[j].result).empty())
    return {};
  size_t compared = 0;
  for (const auto& name : names_) {
    if (DtypeOf(i, name) != DtypeOf(j, name)) return {};
    if (FindValue(i, name) == nullptr) continue;
    const TensorDifference* difference = Difference(i, j, name);
    if (difference == nullptr || !difference->Same()) return {};
    ++compared;
  }
  return compared == 0 ? Parts{} : Parts{Part{.value = 0, .basis = Basis::kProved}};
}

}  // namespace ulpscope
