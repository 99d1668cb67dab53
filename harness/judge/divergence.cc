// Pairwise comparison, grouping, and one divergence per pair of groups.
#include "harness/judge/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "harness/base/find.h"
#include "harness/judge/casts.h"
#include "harness/judge/flat_program.h"
#include "harness/judge/parting.h"
#include "harness/judge/sentence.h"
#include "harness/judge/tensor_diff.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

enum class Basis { kSame, kLikely, kProved };

/// Where two participants part in one kind: at which value (an index into the program order), and how surely.
struct Part {
  size_t value = 0;
  Basis basis = Basis::kSame;
};
using Parts = std::vector<Part>;

bool TakesPart(const CaseResult& result) {
  if (!RanToAnAnswer(result)) return false;
  const OutcomeKind kind = result.outcome.kind;
  return kind == OutcomeKind::kCompleted || kind == OutcomeKind::kRaised || kind == OutcomeKind::kCrashed;
}

bool NoneInBoth(const std::vector<PrecisionModel>& a, const std::vector<PrecisionModel>& b) {
  return std::ranges::none_of(a, [&](const PrecisionModel& model) { return Contains(b, model); });
}

bool HasModels(const Classification& classification) {
  return classification.kind == ClassificationKind::kIdentified ||
         classification.kind == ClassificationKind::kIndistinguishable ||
         classification.kind == ClassificationKind::kExactOnly;
}

/// Every model sums in float32 or wider, and rounds nothing else to less.
bool SumsWide(const Classification& each) {
  const auto at_least = [](int bits) { return bits >= Binary32().precision; };
  return std::ranges::all_of(each.models, [&](const PrecisionModel& model) {
    const auto acc = ParseAcc(model.acc);
    const auto prod = ParseProd(model.prod);
    return acc && prod && acc->wide() && at_least(prod->bits()) && model.in.empty() && model.cuts.empty() &&
           (model.mid == "none" || model.mid == "float32");
  });
}

/// There is a facet of which the two have no word in common.
bool FacetParts(const Classification& a, const Classification& b) {
  return std::ranges::any_of(a.facets, [&](const auto& facet) {
    const auto other = b.facets.find(facet.first);
    return other != b.facets.end() && Disjoint(facet.second, other->second);
  });
}

/// Whether two classifications of one value in one dtype exclude each other.
Basis CompareClasses(const Classification& a, const Classification& b) {
  using enum ClassificationKind;
  const bool unmodelled_a = a.kind == kUnmodelled;
  const bool unmodelled_b = b.kind == kUnmodelled;
  if (!(HasModels(a) || unmodelled_a) || !(HasModels(b) || unmodelled_b)) return Basis::kSame;
  if (unmodelled_a && unmodelled_b)
    return Basis::kSame;  // nothing is known of either; the bits are compared as `value`
  // A copy of what is stored is exact, whatever computes it; another reads what it was before it was stored.
  if (FindOtherRead(a, b)) return Basis::kLikely;
  if (!unmodelled_a && !unmodelled_b && (a.kind == kExactOnly || b.kind == kExactOnly)) return Basis::kSame;
  if (a.piece != b.piece) return Basis::kSame;
  // Where but a few models were tried, those that are left are likely, and the others are not excluded.
  const auto few_tried = [](const Classification& each) {
    return each.rests_on_likelihood && each.models.size() >= each.models_proved.size();
  };
  if (NoneInBoth(a.models_proved, b.models_proved) && !few_tried(a) && !few_tried(b)) return Basis::kProved;
  if (!NoneInBoth(a.models, b.models)) return Basis::kSame;
  // Sums that are all in float32 or wider: which of them they are likely is told where a facet tells it.
  return SumsWide(a) && SumsWide(b) && !FacetParts(a, b) ? Basis::kSame : Basis::kLikely;
}

/// The comparison of one case: its participants, their values in program order, and the relation of each
/// kind.
class Comparison {
 public:
  Comparison(const Case& test_case, std::span<const Participant> participants, JudgedAs judged,
             const std::set<std::string>& known)
      : case_(test_case) {
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

  std::vector<Divergence> Run() {
    const auto outcome = [this](size_t i, size_t j) { return OutcomeParts(i, j); };
    const auto dtype = [this](size_t i, size_t j) { return AtEachValue(i, j, &Comparison::PartInDtype); };
    const auto precision = [this](size_t i, size_t j) {
      return AtEachValue(i, j, &Comparison::PartInPrecision);
    };
    const auto classes = [&](size_t i, size_t j) {
      Parts parts = outcome(i, j);
      for (const Part& part : dtype(i, j)) parts.push_back(part);
      for (const Part& part : precision(i, j)) parts.push_back(part);
      return parts;
    };
    Collect(DivergenceKind::kOutcome, classes, outcome);
    Collect(DivergenceKind::kDtype, dtype, dtype);
    if (operands_.empty())
      Collect(DivergenceKind::kPrecision, precision, precision);
    else
      TellSteps();
    for (const auto& [kind, member] : {std::pair{DivergenceKind::kOrder, &Comparison::PartInOrder},
                                       std::pair{DivergenceKind::kBits, &Comparison::PartInBits},
                                       std::pair{DivergenceKind::kValue, &Comparison::PartInValue},
                                       std::pair{DivergenceKind::kSpecial, &Comparison::PartInSpecial}}) {
      const auto relation = [this, member = member](size_t i, size_t j) { return AtEachValue(i, j, member); };
      // What one order explains is not said of two together that part in precision there.
      std::set<size_t> at;
      for (size_t i = 0; i < members_.size(); ++i) {
        for (size_t j = i + 1; j < members_.size(); ++j) {
          for (const Part& part : Between(relation, i, j)) at.insert(part.value);
        }
      }
      const auto alike = [&](size_t i, size_t j) {
        Parts parts = relation(i, j);
        for (const Part& part : precision(i, j)) {
          if (at.contains(part.value)) parts.push_back(part);
        }
        return parts;
      };
      const bool one_class = kind == DivergenceKind::kOrder || kind == DivergenceKind::kBits;
      Collect(kind, one_class ? Relation(alike) : Relation(relation), relation);
    }
    const auto casts = [this](size_t i, size_t j) { return CastParts(i, j); };
    Collect(DivergenceKind::kCasts, casts, casts);
    AddGraphGaps();
    return std::move(divergences_);
  }

 private:
  using Relation = std::function<Parts(size_t, size_t)>;
  using ValueRelation = Basis (Comparison::*)(size_t, size_t, const std::string&) const;

  void AddName(const std::string& name) {
    if (!Contains(names_, name)) names_.push_back(name);
  }

  bool Completed(size_t i) const { return members_[i].result->outcome.kind == OutcomeKind::kCompleted; }

  const ValueResult* FindValue(size_t i, const std::string& name) const {
    const auto& values = members_[i].result->values;
    const auto value = values.find(name);
    return value == values.end() ? nullptr : &value->second;
  }

  const TensorData* FindTensor(size_t i, const std::string& name) const {
    if (members_[i].observation == nullptr) return nullptr;
    const auto& values = members_[i].observation->values;
    const auto value = values.find(name);
    return value == values.end() ? nullptr : &value->second;
  }

  /// The dtype of a value, or what was answered for an observed dtype; "none" for neither.
  std::string DtypeOf(size_t i, const std::string& name) const {
    if (const ValueResult* value = FindValue(i, name)) return std::string(Name(value->dtype));
    const auto& observations = members_[i].result->observations;
    const auto observation = observations.find(name);
    return observation == observations.end() ? "none" : observation->second;
  }

  bool ShapesDiffer(size_t i, size_t j, const std::string& name) const {
    const ValueResult* a = FindValue(i, name);
    const ValueResult* b = FindValue(j, name);
    return a != nullptr && b != nullptr && a->shape != b->shape;
  }

  /// The dtype, with the shape where that is what parts the two.
  std::string TypeOf(size_t i, size_t j, const std::string& name) const {
    if (!ShapesDiffer(i, j, name)) return DtypeOf(i, name);
    const ValueResult* value = FindValue(i, name);
    return Describe(value->dtype, value->shape);
  }

  /// Null unless both have the value in one dtype and shape. Remembered: every kind asks, and tensors may be
  /// large.
  const TensorDifference* Difference(size_t i, size_t j, const std::string& name) const {
    const TensorData* a = FindTensor(i, name);
    const TensorData* b = FindTensor(j, name);
    if (a == nullptr || b == nullptr || a->dtype != b->dtype || a->shape != b->shape) return nullptr;
    const auto [entry, inserted] = differences_.try_emplace({i, j, name});
    if (inserted) entry->second = CompareTensors(*a, *b);
    return &entry->second;
  }

  bool Nondeterministic(size_t i, const std::string& name) const {
    return members_[i].observation != nullptr && members_[i].observation->nondeterministic.contains(name);
  }

  Parts OutcomeParts(size_t i, size_t j) const {
    if (members_[i].result->outcome.kind == members_[j].result->outcome.kind) return {};
    return {Part{.value = 0, .basis = Basis::kProved}};
  }

  Parts AtEachValue(size_t i, size_t j, ValueRelation relation) const {
    Parts parts;
    if (!Completed(i) || !Completed(j)) return parts;
    for (size_t v = 0; v < names_.size(); ++v) {
      const Basis basis = (this->*relation)(i, j, names_[v]);
      if (basis != Basis::kSame) parts.push_back({.value = v, .basis = basis});
    }
    return parts;
  }

  /// A backend that answers "none" to an observed dtype has no such thing (JAX has no metadata of gradients);
  /// a value that one backend gives and another does not is a difference.
  bool HasNoSuchThing(size_t i, const std::string& name) const {
    return FindValue(i, name) == nullptr && name.ends_with("_dtype") && DtypeOf(i, name) == "none";
  }

  Basis PartInDtype(size_t i, size_t j, const std::string& name) const {
    if (HasNoSuchThing(i, name) || HasNoSuchThing(j, name)) return Basis::kSame;
    return DtypeOf(i, name) == DtypeOf(j, name) && !ShapesDiffer(i, j, name) ? Basis::kSame : Basis::kProved;
  }

  Basis PartInPrecision(size_t i, size_t j, const std::string& name) const {
    const ValueResult* a = FindValue(i, name);
    const ValueResult* b = FindValue(j, name);
    if (a == nullptr || b == nullptr || a->dtype != b->dtype || !IsFloating(a->dtype)) return Basis::kSame;
    if (const auto* difference = Difference(i, j, name); difference != nullptr && difference->Same())
      return Basis::kSame;
    return CompareClasses(a->classification, b->classification);
  }

  void NoteOperands(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      NoteOperands(step.steps);
      if (IsArrangement(step)) views_.insert(step.as);
      for (const Operand& operand : step.of) {
        if (!operand.IsScalar()) operands_[step.as].push_back(operand.name);
      }
    }
  }

  /// The step already had other numbers to compute with.
  bool Inherited(size_t i, size_t j, const std::string& name) const {
    const auto operands = operands_.find(name);
    if (operands == operands_.end()) return false;
    return std::ranges::any_of(operands->second, [&](const std::string& operand) {
      const TensorDifference* difference = Difference(i, j, operand);
      return difference != nullptr && !difference->Same();
    });
  }

  /// Nothing but that one has zeros where the other has numbers below those that keep all their bits.
  bool Flushes(size_t i, size_t j, const std::string& name) const {
    const TensorData *a = FindTensor(i, name), *b = FindTensor(j, name);
    if (a == nullptr || b == nullptr || a->dtype != b->dtype || a->shape != b->shape) return false;
    const Flushing flushing = FindFlushing(*a, *b);
    return flushing.alone && (flushing.left || flushing.right);
  }

  /// The op sums and does nothing else that libraries do in their own ways.
  static bool SumsAlone(const Classification& classification) {
    const auto acc = classification.facets.find("acc");
    return acc != classification.facets.end() && !acc->second.empty() && classification.cuts.empty() &&
           classification.label.find("accumulated in") != std::string::npos;
  }

  Basis PartInOrder(size_t i, size_t j, const std::string& name) const {
    if (PartInLastBits(i, j, name) == Basis::kSame) return Basis::kSame;
    const Classification &a = FindValue(i, name)->classification, &b = FindValue(j, name)->classification;
    return SumsAlone(a) && SumsAlone(b) && !NoneInBoth(a.models, b.models) ? Basis::kProved : Basis::kSame;
  }

  Basis PartInBits(size_t i, size_t j, const std::string& name) const {
    return PartInOrder(i, j, name) == Basis::kSame ? PartInLastBits(i, j, name) : Basis::kSame;
  }

  /// The class is that of one step alone, and whether both had the same to compute it from is not known here.
  bool MayBeInherited(const Classification& classification) const {
    return operands_.empty() && !classification.piece.empty() && !classification.piece.starts_with("steps ");
  }

  /// Of one class, with other bits.
  Basis PartInLastBits(size_t i, size_t j, const std::string& name) const {
    if (Inherited(i, j, name) || Flushes(i, j, name)) return Basis::kSame;
    const ValueResult* a = FindValue(i, name);
    const ValueResult* b = FindValue(j, name);
    if (a == nullptr || b == nullptr || !HasModels(a->classification) || !HasModels(b->classification) ||
        a->classification.piece != b->classification.piece || MayBeInherited(a->classification))
      return Basis::kSame;
    if (PartInPrecision(i, j, name) != Basis::kSame || Nondeterministic(i, name) ||
        Nondeterministic(j, name)) {
      return Basis::kSame;
    }
    const TensorDifference* difference = Difference(i, j, name);
    return difference != nullptr && difference->number > 0 ? Basis::kProved : Basis::kSame;
  }

  bool IsUnexplained(size_t i, const std::string& name) const {
    const ValueResult* value = FindValue(i, name);
    return value != nullptr && value->classification.kind == ClassificationKind::kUnmodelled;
  }

  /// Of a step that nothing explains on `i` alone there is a finding already, beside others who compute it otherwise.
  bool IsToldUnexplained(size_t i, size_t j, const std::string& name) const {
    if (operands_.empty() || !IsUnexplained(i, name) || IsUnexplained(j, name)) return false;
    for (size_t other = 0; other < members_.size(); ++other) {
      if (other != i && Completed(other) && PartInPrecision(i, other, name) != Basis::kSame) return true;
    }
    return false;
  }

  /// The first of those that nothing explains and that have the bits of `i` in the value and in what it was computed from.
  size_t FirstUnexplainedLike(size_t i, const std::string& name) const {
    for (size_t first = 0; first < i; ++first) {
      const TensorDifference* difference = Difference(first, i, name);
      if (IsUnexplained(first, name) && difference != nullptr && difference->Same() &&
          !Inherited(first, i, name))
        return first;
    }
    return i;
  }

  Basis PartInValue(size_t i, size_t j, const std::string& name) const {
    if (Inherited(i, j, name)) return Basis::kSame;
    const ValueResult* a = FindValue(i, name);
    const ValueResult* b = FindValue(j, name);
    if (a == nullptr || b == nullptr) return Basis::kSame;
    const bool rivals =
        a->classification.piece == b->classification.piece && !MayBeInherited(a->classification);
    if (rivals && !Flushes(i, j, name) && (HasModels(a->classification) || HasModels(b->classification)))
      return Basis::kSame;
    if (!rivals && PartInPrecision(i, j, name) != Basis::kSame) return Basis::kSame;
    if (IsToldUnexplained(i, j, name) || IsToldUnexplained(j, i, name)) return Basis::kSame;
    if (Nondeterministic(i, name) || Nondeterministic(j, name)) return Basis::kSame;
    const TensorDifference* difference = Difference(i, j, name);
    return difference != nullptr && difference->number > 0 ? Basis::kProved : Basis::kSame;
  }

  /// Whether one of its operands already was infinite or NaN on one side alone.
  bool InheritedInKind(size_t i, size_t j, const std::string& name) const {
    const auto operands = operands_.find(name);
    if (operands == operands_.end()) return false;
    return std::ranges::any_of(operands->second, [&](const std::string& operand) {
      const TensorDifference* difference = Difference(i, j, operand);
      return difference != nullptr && difference->one_finite > 0;
    });
  }

  /// Other operands do not say that one side leaves the range and the other stays in it.
  Basis PartInSpecial(size_t i, size_t j, const std::string& name) const {
    const TensorDifference* difference = Difference(i, j, name);
    if (difference == nullptr || difference->special == 0) return Basis::kSame;
    const bool inherited = difference->one_finite > 0 ? InheritedInKind(i, j, name) : Inherited(i, j, name);
    return inherited ? Basis::kSame : Basis::kProved;
  }

  /// The step may give an infinity of finite numbers that are not large: it divides, or takes a logarithm, or is given one.
  static bool MakesInfinities(const Step& step) {
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

  /// Whether finite numbers become infinite on the way to `name` by growing alone.
  bool GrowsAlone(const std::string& name) const {
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

  Parts CastParts(size_t i, size_t j) const {
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

  /// What parts two backends that are to be compared.
  Parts Between(const Relation& relation, size_t i, size_t j) const {
    return known_[i] && known_[j] ? Parts{} : relation(i, j);
  }

  /// Each backend joins the first group from none of whose members it parts.
  std::vector<std::vector<size_t>> Group(const Relation& relation) const {
    std::vector<std::vector<size_t>> groups;
    for (size_t i = 0; i < members_.size(); ++i) {
      const auto fits = std::ranges::find_if(groups, [&](const std::vector<size_t>& group) {
        return std::ranges::all_of(group,
                                   [&](size_t member) { return Between(relation, member, i).empty(); });
      });
      if (fits == groups.end()) {
        groups.push_back({i});
      } else {
        fits->push_back(i);
      }
    }
    return groups;
  }

  void Collect(DivergenceKind kind, const Relation& grouping, const Relation& relation) {
    const auto groups = Group(grouping);
    for (size_t g = 0; g < groups.size(); ++g) {
      for (size_t h = g + 1; h < groups.size(); ++h) Compare(kind, groups[g], groups[h], relation);
    }
  }

  /// Who parts in one value, or in several for one cause.
  struct Parted {
    std::set<size_t> left, right, values;
    size_t speakers[2] = {0, 0};  ///< of the first value
    bool all_proved = true;       ///< in the first value, which is what is said
  };

  void Compare(DivergenceKind kind, const std::vector<size_t>& left, const std::vector<size_t>& right,
               const Relation& relation) {
    std::map<size_t, Parted> by_value;
    for (const size_t i : left) {
      for (const size_t j : right) {
        for (const Part& part : Between(relation, i, j)) {
          const auto [entry, is_new] = by_value.try_emplace(part.value);
          Parted& parted = entry->second;
          if (is_new) {
            parted.speakers[0] = i;
            parted.speakers[1] = j;
          }
          parted.left.insert(i);
          parted.right.insert(j);
          parted.values.insert(part.value);
          parted.all_proved = parted.all_proved && part.basis == Basis::kProved;
        }
      }
    }
    if (by_value.empty()) return;
    // Of a program that was judged as a whole one cause goes on from value to value.
    Parted cause = std::move(by_value.begin()->second);
    for (auto entry = std::next(by_value.begin()); entry != by_value.end(); ++entry) {
      cause.left.merge(entry->second.left);
      cause.right.merge(entry->second.right);
      cause.values.insert(entry->first);
    }
    divergences_.push_back(Said(kind, cause));
  }

  /// One thing that some backends do in one step and others do not. `left` are the doers.
  struct Finding {
    Parted parted;
    std::string what;  ///< without the names of values: what is said of several of them is told once
    std::string sentence;
  };

  /// Each step has findings of its own: one for each deed, whose subject are those that do it; one for each pair of deeds of which
  /// either is told of nobody who does not; one for each backend whose results nothing explains.
  void TellSteps() {
    std::vector<Finding> found;
    for (size_t v = 0; v < names_.size(); ++v) {
      for (Finding& finding : FindingsOf(v)) {
        const auto known = std::ranges::find_if(found, [&](const Finding& each) {
          return each.what == finding.what && each.parted.left == finding.parted.left &&
                 each.parted.right == finding.parted.right;
        });
        if (known == found.end())
          found.push_back(std::move(finding));
        else
          known->parted.values.insert(v);
      }
    }
    for (const Finding& finding : found) {
      divergences_.push_back(Named(DivergenceKind::kPrecision, finding.parted));
      divergences_.back().sentence = finding.sentence;
    }
  }

  /// Two that part in a step, and what each does that the other does not.
  struct Pair {
    size_t i = 0, j = 0;
    Basis basis = Basis::kSame;
    std::optional<Parting> deeds;
  };

  std::vector<Pair> PairsOf(size_t v) const {
    std::vector<Pair> pairs;
    const bool is_view = views_.contains(names_[v]);
    for (size_t i = 0; i < members_.size(); ++i) {
      for (size_t j = i + 1; j < members_.size(); ++j) {
        if (!Completed(i) || !Completed(j) || (known_[i] && known_[j])) continue;
        // Another arrangement of what was told already is no deed of its own.
        if (is_view && Inherited(i, j, names_[v])) continue;
        const Basis basis = PartInPrecision(i, j, names_[v]);
        if (basis == Basis::kSame) continue;
        pairs.push_back(
            {.i = i,
             .j = j,
             .basis = basis,
             .deeds = FindDeeds(case_, names_[v], *FindValue(i, names_[v]), *FindValue(j, names_[v]))});
      }
    }
    return pairs;
  }

  static void Join(size_t doer, size_t other, Basis basis, size_t v, Parted* parted) {
    if (parted->left.empty()) {
      parted->speakers[0] = doer;
      parted->speakers[1] = other;
    }
    parted->left.insert(doer);
    parted->right.insert(other);
    parted->values.insert(v);
    parted->all_proved = parted->all_proved && basis == Basis::kProved;
  }

  std::vector<Finding> FindingsOf(size_t v) const {
    std::vector<std::pair<Deed, Parted>> deeds;
    std::vector<std::pair<std::pair<Deed, Deed>, Parted>> both;
    std::vector<std::pair<std::pair<std::string, std::string>, Parted>> classes;
    std::vector<std::pair<size_t, Parted>> unexplained;
    const auto at = [](auto& list, const auto& key) -> Parted& {
      const auto known = std::ranges::find_if(list, [&](const auto& each) { return each.first == key; });
      if (known != list.end()) return known->second;
      return list.emplace_back(key, Parted{}).second;
    };
    const std::vector<Pair> pairs = PairsOf(v);
    for (const Pair& pair : pairs) {
      for (const auto& [mine, other] : {std::pair{pair.i, pair.j}, std::pair{pair.j, pair.i}}) {
        if (IsUnexplained(mine, names_[v]))
          Join(mine, other, Basis::kProved, v, &at(unexplained, FirstUnexplainedLike(mine, names_[v])));
      }
      if (!pair.deeds) continue;
      if (pair.deeds->b.Nothing()) Join(pair.i, pair.j, pair.basis, v, &at(deeds, pair.deeds->a));
      if (pair.deeds->a.Nothing()) Join(pair.j, pair.i, pair.basis, v, &at(deeds, pair.deeds->b));
    }
    const auto is_told = [&](size_t member, const Deed& deed) {
      return std::ranges::any_of(
          deeds, [&](const auto& each) { return each.first == deed && each.second.left.contains(member); });
    };
    for (const Pair& pair : pairs) {
      if (IsUnexplained(pair.i, names_[v]) || IsUnexplained(pair.j, names_[v])) continue;
      if (!pair.deeds) {
        const auto how = [&](size_t member) {
          return DescribeClass(case_, names_[v], *FindValue(member, names_[v]));
        };
        std::string left = how(pair.i), right = how(pair.j);
        const bool turned = right < left;
        if (turned) std::swap(left, right);
        Join(turned ? pair.j : pair.i, turned ? pair.i : pair.j, pair.basis, v,
             &at(classes, std::pair{std::move(left), std::move(right)}));
      } else if (!pair.deeds->a.Nothing() && !pair.deeds->b.Nothing() &&
                 !(is_told(pair.i, pair.deeds->a) && is_told(pair.j, pair.deeds->b))) {
        const bool turned = pair.deeds->b.singular < pair.deeds->a.singular;
        Join(turned ? pair.j : pair.i, turned ? pair.i : pair.j, pair.basis, v,
             &at(both,
                 turned ? std::pair{pair.deeds->b, pair.deeds->a} : std::pair{pair.deeds->a, pair.deeds->b}));
      }
    }
    std::vector<Finding> findings;
    const auto tell = [&](const Parted& parted, const std::string& what, std::string sentence) {
      findings.push_back(
          {.parted = parted, .what = CauseOf(what, names_[v]), .sentence = std::move(sentence)});
    };
    for (const auto& [deed, parted] : deeds) {
      const Side doers = MakeSide(parted.left, parted.speakers[0]),
                 others = MakeSide(parted.right, parted.speakers[1]);
      tell(parted, deed.singular,
           DeedSentence(doers, others, names_[v], deed, parted.all_proved ? "proved" : "likely",
                        Although(doers, others, names_[v])));
    }
    for (const auto& [two, parted] : both)
      tell(parted, two.first.singular + ";" + two.second.singular,
           Said(DivergenceKind::kPrecision, parted).sentence);
    for (const auto& [two, parted] : classes)
      tell(parted, two.first + ";" + two.second, Said(DivergenceKind::kPrecision, parted).sentence);
    for (const auto& [who, parted] : unexplained) {
      tell(parted, fmt::format("unexplained {} {}", who, v),
           UnexplainedSentence(MakeSide(parted.left, who), MakeSide(parted.right, parted.speakers[1]),
                               names_[v]));
    }
    return findings;
  }

  /// A divergence without its sentence.
  Divergence Named(DivergenceKind kind, const Parted& parted) const {
    Divergence divergence;
    divergence.case_id = case_.id;
    divergence.kind = kind;
    divergence.basis = parted.all_proved ? "proved" : "likely";
    const bool names_values = kind != DivergenceKind::kOutcome && kind != DivergenceKind::kCasts;
    if (names_values) {
      divergence.value = names_[*parted.values.begin()];
      for (const size_t v : parted.values) {
        if (v != *parted.values.begin()) divergence.also.push_back(names_[v]);
      }
    }
    const size_t i = parted.speakers[0], j = parted.speakers[1];
    divergence.backends = {MakeSide(parted.left, i).names, MakeSide(parted.right, j).names};
    if (kind == DivergenceKind::kCasts)
      divergence.stages = {StageThatDiffers(*members_[i].result, *members_[j].result)};
    return divergence;
  }

  /// Of casts in a stage: of each side those that have the casts of its speaker there. Others have no such stage.
  Parted WithTheSameCasts(Parted parted) const {
    const std::string stage =
        StageThatDiffers(*members_[parted.speakers[0]].result, *members_[parted.speakers[1]].result);
    const auto keep = [&](std::set<size_t>* side, size_t speaker) {
      const CastKeys keys = CastKeysOf(*members_[speaker].result, stage);
      std::erase_if(*side,
                    [&](size_t member) { return CastKeysOf(*members_[member].result, stage) != keys; });
    };
    keep(&parted.left, parted.speakers[0]);
    keep(&parted.right, parted.speakers[1]);
    return parted;
  }

  Divergence Said(DivergenceKind kind, const Parted& all) const {
    const Parted parted = kind == DivergenceKind::kCasts ? WithTheSameCasts(all) : all;
    Divergence divergence = Named(kind, parted);
    divergence.sentence = Sentence(divergence, MakeSide(parted.left, parted.speakers[0]),
                                   MakeSide(parted.right, parted.speakers[1]), parted);
    return divergence;
  }

  /// What is said of `value` without its name: two values share a cause where all else that is said of them is the same, the operands
  /// included.
  static std::string CauseOf(const std::string& sentence, const std::string& value) {
    std::string cause;
    const auto in_a_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '@' || c == '~';
    };
    for (size_t at = 0; at < sentence.size();) {
      size_t end = at;
      while (end < sentence.size() && in_a_word(sentence[end])) ++end;
      const std::string word = sentence.substr(at, std::max<size_t>(end - at, 1));
      cause += word == value ? "#" : word;
      at += word.size();
    }
    return cause;
  }

  Side MakeSide(const std::set<size_t>& members, size_t speaker) const {
    Side side{.names = {}, .speaker = members_[speaker]};
    for (const size_t member : members) {
      side.names.push_back(members_[member].result->backend);
      side.all.push_back(members_[member].observation);
      side.results.push_back(members_[member].result);
    }
    return side;
  }

  std::string Sentence(const Divergence& divergence, const Side& a, const Side& b,
                       const Parted& parted) const {
    const std::string& value = divergence.value;
    const size_t i = parted.speakers[0], j = parted.speakers[1];
    switch (divergence.kind) {
      case DivergenceKind::kOutcome:
        return OutcomeSentence(a, b);
      case DivergenceKind::kDtype:
        return DtypeSentence(a, b, value, TypeOf(i, j, value), TypeOf(j, i, value));
      case DivergenceKind::kPrecision:
        return PrecisionSentence(case_, a, b, value, divergence.basis, Although(a, b, value));
      case DivergenceKind::kCasts: {
        const std::string& stage = divergence.stages.front();
        return CastsSentence(a, b, stage, CastsOf(*members_[i].result, stage),
                             CastsOf(*members_[j].result, stage));
      }
      default:
        if (divergence.kind == DivergenceKind::kSpecial && Difference(i, j, value)->one_finite > 0)
          return RangeSentence(a, b, value, GrowsAlone(value) ? Infinity::kOverflow : Infinity::kAny);
        return DifferenceSentence(divergence.kind, a, b, value, DifferencesOf(parted, value),
                                  ComesFrom(parted, value));
    }
  }

  /// An operand of the step that gives `value`, which in each pair differs wherever the value does; empty without one.
  std::string ComesFrom(const Parted& parted, const std::string& value) const {
    const Step* step = FindStep(case_.program, value);
    if (step == nullptr) return "";
    const auto differs_where_it_does = [&](size_t i, size_t j, const std::string& operand) {
      const TensorDifference *own = Difference(i, j, value), *before = Difference(i, j, operand);
      if (own == nullptr || own->Same()) return true;
      if (before == nullptr || before->Same()) return false;
      const TensorData &a = *FindTensor(i, value), &b = *FindTensor(j, value);
      const TensorData &from_a = *FindTensor(i, operand), &from_b = *FindTensor(j, operand);
      if (from_a.shape != a.shape) return false;
      for (int64_t k = 0; k < a.size(); ++k) {
        if (DiffersInNumber(a.At(k), b.At(k)) && !DiffersInNumber(from_a.At(k), from_b.At(k))) return false;
      }
      return true;
    };
    for (const Operand& operand : step->of) {
      if (operand.IsScalar() || case_.FindTensor(operand.name) != nullptr) continue;
      const bool all = std::ranges::all_of(parted.left, [&](size_t i) {
        return std::ranges::all_of(parted.right,
                                   [&](size_t j) { return differs_where_it_does(i, j, operand.name); });
      });
      if (all) return operand.name;
    }
    return "";
  }

  /// Of each pair that parts; the speakers' first.
  std::vector<const TensorDifference*> DifferencesOf(const Parted& parted, const std::string& value) const {
    std::vector<const TensorDifference*> found{Difference(parted.speakers[0], parted.speakers[1], value)};
    for (const size_t i : parted.left) {
      for (const size_t j : parted.right) {
        const TensorDifference* each = Difference(i, j, value);
        if (each != nullptr && each != found.front()) found.push_back(each);
      }
    }
    return found;
  }

  /// A backend whose graph rounds and whose numbers do not: said in the sentence of its precision divergence.
  std::string Although(const Side& a, const Side& b, const std::string& value) const {
    for (const Side* side : {&a, &b}) {
      const auto lost = FindVanishedRounding(*side->speaker.result, TraceOf(side->speaker));
      if (!lost || lost->value != value) continue;
      const std::string whose = side->names.size() == 1 ? "its" : "the";
      const std::string of = side->names.size() == 1 ? "" : " of " + side->speaker.result->backend;
      return fmt::format(", although {} {} graph{} {} ({} -> {})", whose, lost->from, of,
                         lost->by == GraphGap::By::kCast
                             ? fmt::format("converts to {} and back", lost->format)
                             : fmt::format("computes it in {} and widens that", lost->format),
                         lost->from, lost->to);
    }
    return "";
  }

  static std::span<const TraceNode> TraceOf(const Participant& member) {
    return member.observation == nullptr ? std::span<const TraceNode>{} : member.observation->trace;
  }

  /// Vanished roundings that no precision divergence of this case speaks of, and all that appeared.
  void AddGraphGaps() {
    const auto told = [&](const std::string& backend) {
      return std::ranges::any_of(divergences_, [&](const Divergence& divergence) {
        return divergence.kind == DivergenceKind::kPrecision &&
               std::ranges::any_of(divergence.backends,
                                   [&](const auto& group) { return Contains(group, backend); });
      });
    };
    for (const Participant& member : members_) {
      const std::string& backend = member.result->backend;
      if (const auto lost = FindVanishedRounding(*member.result, TraceOf(member)); lost && !told(backend))
        AddGraphGap(backend, *lost);
      if (const auto appeared = FindAppearedRounding(*member.result, TraceOf(member)))
        AddGraphGap(backend, *appeared);
    }
  }

  void AddGraphGap(const std::string& backend, const GraphGap& gap) {
    Divergence divergence;
    divergence.case_id = case_.id;
    divergence.kind = DivergenceKind::kGraphVsExecution;
    divergence.backends = {{backend}};
    divergence.value = gap.value;
    divergence.basis = gap.basis;
    divergence.stages = {gap.from, gap.to};
    divergence.sentence = GraphGapSentence(backend, gap);
    divergences_.push_back(std::move(divergence));
  }

  const Case& case_;
  std::map<std::string, std::vector<std::string>>
      operands_;                 ///< of single steps, by the value that each gives
  std::set<std::string> views_;  ///< of those the ones that arrange what another one gives
  std::vector<Participant> members_;
  std::vector<bool> known_;         ///< of each member: compared by its steps with others that are
  std::vector<std::string> names_;  ///< values in program order, then observed dtypes
  std::vector<Divergence> divergences_;
  mutable std::map<std::tuple<size_t, size_t, std::string>, TensorDifference> differences_;
};

}  // namespace

std::vector<Divergence> FindDivergences(const Case& test_case, std::span<const Participant> participants,
                                        JudgedAs judged, const std::set<std::string>& known) {
  return Comparison(test_case, participants, judged, known).Run();
}

}  // namespace ulpscope
