// Finds the roundings of a choice that are identities, and removes them.
#include "oracles/canonical.h"

#include <algorithm>

#include "harness/base/check.h"
#include "harness/base/find.h"

namespace ulpscope {
namespace {

/// True for operations that return their argument's values, and so keep their format.
bool KeepsFormat(NodeKind kind) {
  return kind == NodeKind::kCast || kind == NodeKind::kStore || kind == NodeKind::kNeg ||
         kind == NodeKind::kView || kind == NodeKind::kFloor || kind == NodeKind::kCeil ||
         kind == NodeKind::kRound || kind == NodeKind::kTrunc || kind == NodeKind::kMinimum ||
         kind == NodeKind::kRanked;
}

/// The bits of an exact product of two tensors of the case, which are those of both together; 0 for others.
int BitsOfProduct(const Plan& plan, const PlanNode& node) {
  int bits = 0;
  for (const int arg : node.args) {
    const PlanNode& factor = plan.at(plan.Root(arg));
    const FloatFormat* format = factor.kind == NodeKind::kInput ? FormatOf(factor.dtype) : nullptr;
    if (format == nullptr) return 0;
    bits += format->precision;
  }
  return bits;
}

/// The format that has so many; null if none is known.
const FloatFormat* FormatOfProduct(const Plan& plan, const PlanNode& node) {
  const int bits = BitsOfProduct(plan, node);
  return bits == 0 || bits > Binary64().precision ? nullptr
         : bits <= Binary32().precision           ? &Binary32()
                                                  : &Binary64();
}

const FloatFormat* OperationFormat(const Plan& plan, int id, const Choice& choice);

/// The format of a choice's option: a constant is in any format that holds it.
const FloatFormat* OfferedIn(const Plan& plan, int id, const Choice& choice) {
  if (const auto cut = choice.cuts.find(plan.Root(id)); cut != choice.cuts.end() && !cut->second.empty())
    return cut->second.back();
  const PlanNode& node = plan.at(plan.Root(id));
  if (node.kind != NodeKind::kConstant) return OperationFormat(plan, id, choice);
  const DoubleNumber* number = node.If<DoubleNumber>();
  for (const FloatFormat* format : {&Bfloat16(), &Binary16(), &Binary32()}) {
    if (number != nullptr && IsRepresentable(number->value, *format)) return format;
  }
  return nullptr;
}

/// The format of `node`'s values right after its operation under `choice`, before any rounding; null if none is known
/// to hold them. A widening cast keeps its operand's values: rounding its result to the narrow format again, or to
/// anything in between, is the identity.
const FloatFormat* OperationFormat(const Plan& plan, int id, const Choice& choice) {
  const PlanNode& node = plan.at(id);
  if (node.kind == NodeKind::kInput) return FormatOf(node.dtype);
  if (node.kind == NodeKind::kSign || IsCondition(node.kind)) return &Bfloat16();
  if (node.kind == NodeKind::kTake) return OfferedIn(plan, node.args[0], choice);
  if (node.kind == NodeKind::kJoin) {
    const FloatFormat* all = OfferedIn(plan, node.args[0], choice);
    for (const int arg : node.args) {
      const FloatFormat* other = all == nullptr ? nullptr : OfferedIn(plan, arg, choice);
      all = other == nullptr ? nullptr : Holds(*all, *other) ? all : Holds(*other, *all) ? other : nullptr;
    }
    return all;
  }
  // Known if one format holds either choice.
  if (node.kind == NodeKind::kChoose || node.kind == NodeKind::kLarger || node.kind == NodeKind::kSmaller ||
      node.kind == NodeKind::kFmod) {
    const FloatFormat *a = OfferedIn(plan, node.args[0], choice), *b = OfferedIn(plan, node.args[1], choice);
    if (a == nullptr || b == nullptr) return nullptr;
    return Holds(*a, *b) ? a : Holds(*b, *a) ? b : nullptr;
  }
  if (KeepsFormat(node.kind)) {
    const int argument = node.args.front();
    if (const auto cut = choice.cuts.find(argument); cut != choice.cuts.end() && !cut->second.empty())
      return cut->second.back();
    return OperationFormat(plan, argument, choice);
  }
  // A quotient by a power of two has the bits of the dividend; in a format of a small range it may lose some.
  if (node.kind == NodeKind::kDiv) {
    const bool exact = IsPowerOfTwo(plan.at(plan.Root(node.args[1])));
    const FloatFormat* divided = exact ? OfferedIn(plan, node.args[0], choice) : nullptr;
    if (divided != nullptr && divided->precision >= Binary32().precision) return divided;
  }
  if (IsReduction(node.kind) || node.inner) {
    const AccSpec& acc = choice.acc;
    // Partial sums are no wider than the format that combines them.
    return acc.combine != nullptr ? acc.combine : acc.format;
  }
  const FloatFormat* product = node.kind == NodeKind::kMul ? FormatOfProduct(plan, node) : nullptr;
  return product == &Binary32() ? product : nullptr;
}

/// Precision of an operand after its input rounding.
int OperandPrecision(const ValuePath& path, const Choice& choice, const std::string& operand) {
  const auto in = choice.in.find(operand);
  if (in != choice.in.end() && in->second.format != nullptr) return in->second.format->precision;
  const FloatFormat* format = FormatOf(path.operands.at(operand));
  return format == nullptr ? 53 : format->precision;
}

bool ProductsFit(const ValuePath& path, const Choice& choice, const FloatFormat& format) {
  int widest = 0;
  std::vector<int> precisions;
  for (const auto& [operand, dtype] : path.operands)
    precisions.push_back(OperandPrecision(path, choice, operand));
  std::sort(precisions.rbegin(), precisions.rend());
  for (size_t i = 0; i < precisions.size() && i < 2; ++i) widest += precisions[i];
  if (precisions.size() == 1) widest *= 2;
  return widest <= format.precision && format.emin <= -126;
}

/// The only sum before a value, if only copies and other steps that round nothing follow it.
struct OnlySum {
  const PlanNode* sum = nullptr;  ///< null if there is none
  int64_t terms = 0;
  const FloatFormat* term = nullptr;    ///< that holds each of them; null where none is known
  int bits = 0;                         ///< that each of them has at most, where that is known
  const FloatFormat* stored = nullptr;  ///< first rounding of the finished sum, to nearest; else null
};

/// A finished sum is divided by a power of two: its bits are the quotient's, but for the ends of a format's range.
bool KeepsBits(const Plan& plan, const PlanNode& node) {
  return node.kind == NodeKind::kDiv && IsPowerOfTwo(plan.at(plan.Root(node.args[1])));
}

OnlySum OnlySumOf(const Plan& plan, const ValuePath& path, const Choice& choice) {
  OnlySum only;
  // Longer sums have intermediate roundings, and most candidate models are for those.
  if (path.reductions.size() != 1 || path.reduction_length > 2) return only;
  const PlanNode& sum = plan.at(path.reductions.front());
  only.sum = &sum;
  only.terms = path.reduction_length;
  if (sum.kind == NodeKind::kReduce) {
    only.term = OfferedIn(plan, sum.args[0], choice);
    only.bits = only.term == nullptr ? 0 : only.term->precision;
  } else if (sum.kind == NodeKind::kContract && sum.args.size() <= 2 && sum.alpha() == 1) {
    only.bits = BitsOfProduct(plan, sum);
    only.term = choice.prod.format != nullptr ? choice.prod.format : FormatOfProduct(plan, sum);
  } else {
    return {};
  }
  if (choice.out.to_nearest()) only.stored = choice.out.format;
  if (!choice.mid.none()) only.stored = choice.mid.format;
  for (int id = path.root; id != path.reductions.front();) {
    const PlanNode& node = plan.at(id);
    const bool copies =
        node.kind == NodeKind::kCast || node.kind == NodeKind::kStore || node.kind == NodeKind::kView;
    // At the end of its range a format loses bits of the quotient.
    if (KeepsBits(plan, node))
      only.stored = nullptr;
    else if (!copies)
      return {};
    id = node.args[0];
    if (const auto cut = choice.cuts.find(id); cut != choice.cuts.end() && !cut->second.empty())
      only.stored = cut->second.front();
  }
  return only;
}

/// True if rounding to nearest into the same format leaves a wide rounding before it without effect: it keeps the only
/// term, or has the bits to round a sum of two terms twice as if once (S. Figueroa, "When is double rounding
/// innocuous?", SIGNUM Newsletter 30, 1995: 2p + 2 bits; that the first one may truncate follows from where the bits of
/// the smaller term begin).
bool IsNoDetour(const OnlySum& only, const FloatFormat& format, const FloatFormat& stored) {
  if (only.term == nullptr || !Holds(format, *only.term)) return false;
  return only.terms == 1 ||
         (Holds(format, stored) && format.precision >= only.term->precision + stored.precision + 2);
}

/// One rounding at most: of the only term, or of the sum of two.
bool IsAddedOnce(const OnlySum& only) {
  return only.sum != nullptr && (only.sum->kind == NodeKind::kReduce ? only.terms <= 2 : only.terms == 1);
}

/// True if an exact sum of exact products gives the same as sums in `acc`: a term that is added to nothing, or once, is
/// rounded once, by the output rounding.
bool AddsNothing(const OnlySum& only, const AccSpec& acc) {
  if (!IsAddedOnce(only) || acc.exact() || acc.subnormals != Subnormals::kGradual) return false;
  // The last bits of one product lie no further below the sum of its exponents than it has bits.
  if (acc.block > 0 && (only.terms != 1 || only.bits == 0 || acc.fraction < only.bits)) return false;
  const auto once = [&](const FloatFormat* format) {
    if (format == nullptr || (only.terms == 1 && only.term != nullptr && Holds(*format, *only.term)))
      return true;
    if (only.stored == nullptr) return false;
    return (format->name == only.stored->name && acc.rounding == Rounding::kNearestEven) ||
           IsNoDetour(only, *format, *only.stored);
  };
  return once(acc.format) && once(acc.partial) && once(acc.combine) &&
         (!acc.via_float32 || once(&Binary32()));
}

}  // namespace

bool IsWide(const FloatFormat* format) { return format != nullptr && format->precision > 11; }

RoundSpec InOf(RoundSpec in, const FloatFormat* held) {
  if (in.format == nullptr && !in.none() && held != nullptr) in.daz_below = held->emin;
  return in;
}

namespace {

/// Drops each format that holds every number of the format before it.
void DropIdentities(const FloatFormat* current, FormatChain* formats) {
  FormatChain kept;
  for (const FloatFormat* format : *formats) {
    if (current != nullptr && Holds(*format, *current)) continue;
    kept.push_back(format);
    current = format;
  }
  *formats = std::move(kept);
}

/// `stored_from`: the format of the value before its output rounding.
void SimplifyStore(const ValuePath& path, const FloatFormat* stored_from, Choice* choice) {
  // Truncating a value that the format holds is no truncation; rounding to nearest into it twice is rounding once.
  const FloatFormat* stored = choice->out.format;
  bool nearest = stored != nullptr && choice->out.rounding == Rounding::kNearestEven;
  if (stored != nullptr && !nearest && stored_from != nullptr && Holds(*stored, *stored_from)) {
    choice->out = ToNearest(*stored);
    nearest = true;
  }
  // After a function that libraries compute to a few units of a format, the direction of the last rounding to it cannot
  // be known.
  if (stored != nullptr && !nearest && path.approximate && stored->precision >= Binary32().precision) {
    choice->out = ToNearest(*stored);
    nearest = true;
  }
  if (nearest && choice->mid.rounds_to(*stored)) choice->mid = {};
}

Choice WithoutIdentities(const Plan& plan, const ValuePath& path, Choice choice) {
  std::erase_if(choice.in, [&](const auto& entry) {
    if (const auto scalar = path.scalars.find(entry.first); scalar != path.scalars.end())
      return !Contains(scalar->second, entry.second);
    const auto operand = path.operands.find(entry.first);
    if (operand == path.operands.end() || entry.second.none()) return true;
    const FloatFormat* format = FormatOf(operand->second);
    const RoundSpec& spec = entry.second;
    return format == nullptr || (spec.format != nullptr && Holds(*spec.format, *format));
  });
  if (path.reductions.empty() && !path.has_inner) choice.acc = {};
  if (!path.has_products) choice.prod = {};
  if (!choice.prod.none() && ProductsFit(path, choice, *choice.prod.format)) choice.prod = {};
  // A product that is rounded anyway when it enters a narrower or equal accumulator one by one is still
  // another model: round(round(ab) + s) is not round(ab + s). But a float64 product of float32 operands is
  // exact.

  if (!choice.mid.none() && IsReduction(plan.at(path.root).kind)) {
    Choice without = choice;
    without.mid = {};
    const OnlySum only = OnlySumOf(plan, path, without);
    if (IsAddedOnce(only) && only.stored != nullptr && IsNoDetour(only, *choice.mid.format, *only.stored))
      choice.mid = {};
  }
  const OnlySum only = OnlySumOf(plan, path, choice);
  if (AddsNothing(only, choice.acc)) choice.acc = {};
  const bool one_term = only.sum != nullptr && only.terms == 1 && choice.acc.exact();
  if (one_term && only.stored != nullptr && choice.prod.rounds_to(*only.stored)) choice.prod = {};

  // A copy into another dtype computes nothing: a rounding before its output is a rounding of the copied value.
  const PlanNode& root = plan.at(path.root);
  if (!choice.mid.none() && (root.kind == NodeKind::kCast || root.kind == NodeKind::kStore)) {
    const int source = plan.Root(root.args[0]);
    if (Contains(path.cut_points, source)) {
      choice.cuts[source].push_back(choice.mid.format);
      choice.mid = {};
    }
  }
  for (const int cut : path.cut_points) DropIdentities(OperationFormat(plan, cut, choice), &choice.cuts[cut]);
  std::erase_if(choice.cuts, [&](const auto& entry) {
    return entry.second.empty() || !Contains(path.cut_points, entry.first);
  });
  // For one term, the format of that term.
  const FloatFormat* before = one_term && choice.cuts.empty() ? OnlySumOf(plan, path, choice).term
                                                              : OperationFormat(plan, path.root, choice);
  if (!choice.mid.none() && before != nullptr && Holds(*choice.mid.format, *before)) choice.mid = {};
  SimplifyStore(path, !choice.mid.none() ? choice.mid.format : before, &choice);
  const bool stores = std::ranges::any_of(
      choice.cuts, [&](const auto& entry) { return plan.at(entry.first).kind != NodeKind::kCast; });
  if (!stores) choice.mode = Rounding::kNearestEven;
  return choice;
}

}  // namespace

Choice Canonical(const Plan& plan, const ValuePath& path, Choice choice) {
  Choice without = WithoutIdentities(plan, path, choice);
  // With one term or two, dropping a later rounding may leave the one before it without effect.
  while (path.reduction_length <= 2 && without != choice) {
    choice = std::move(without);
    without = WithoutIdentities(plan, path, choice);
  }
  return without;
}

PrecisionModel ModelOf(const Plan& plan, const ValuePath& path, const Choice& choice) {
  PrecisionModel model;
  model.in = choice.in;
  model.prod = choice.prod;
  model.acc = choice.acc;
  model.mid = choice.mid;
  model.out = choice.out;
  const FloatFormat* coarsest = choice.mid.format;
  for (const auto& [cut, formats] : choice.cuts) {
    const FloatFormat* own = nullptr;
    for (const FloatFormat* format : formats) {
      if (own == nullptr || format->precision < own->precision) own = format;
    }
    model.cuts[NameOf(plan, cut)] = ToNearest(*own);
    const bool asked = AskedFormat(plan.at(cut)) == own;
    if (!asked && (coarsest == nullptr || own->precision < coarsest->precision)) coarsest = own;
  }
  if (!model.cuts.empty() && !choice.mid.none()) model.cuts[NameOf(plan, path.root)] = choice.mid;
  if (coarsest != nullptr) model.mid = ToNearest(*coarsest);
  return model;
}

Binding BindingOf(const Plan& plan, const ValuePath& path, const Choice& choice) {
  Binding binding;
  binding.store.resize(plan.nodes.size());
  binding.in.resize(plan.nodes.size());
  binding.prod = choice.prod;
  binding.acc = choice.acc;
  for (const int id : path.reductions) {
    const PlanNode& node = plan.at(id);
    for (size_t i = 0; i < (node.kind == NodeKind::kContract ? 2u : 1u); ++i) {
      if (const auto in = choice.in.find(NameOf(plan, node.args[i])); in != choice.in.end())
        binding.in[static_cast<size_t>(id)][i] = InOf(in->second, HeldIn(plan, node.args[i]));
    }
  }
  for (const auto& [cut, formats] : choice.cuts) {
    for (const FloatFormat* const& format : formats) {
      RoundSpec spec = ToNearest(*format);
      // A truncating backend truncates its intermediates too; the program's casts are rounded as casts are.
      if (plan.at(cut).kind != NodeKind::kCast && &format == &formats.back()) spec.rounding = choice.mode;
      binding.store[static_cast<size_t>(cut)].push_back(spec);
    }
  }
  auto& last = binding.store[static_cast<size_t>(path.root)];
  if (!choice.mid.none()) last.push_back(choice.mid);
  if (!choice.out.none()) last.push_back(choice.out);
  for (const auto& [scalar, conversions] : path.scalars) {
    if (const auto in = choice.in.find(scalar); in != choice.in.end()) binding.scalars[scalar] = in->second;
  }
  for (const auto& [operand, in] : choice.in) binding.term_key += operand + ":" + InWord(in) + ",";
  binding.term_key += ProdWord(choice.prod);
  return binding;
}

}  // namespace ulpscope
