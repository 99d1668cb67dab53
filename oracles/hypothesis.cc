// Enumerates, canonicalises and binds precision models.
#include "oracles/hypothesis.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <set>

#include "harness/base/check.h"

namespace ulpscope {
namespace {

const PlanNode& At(const Plan& plan, int id) { return plan.nodes[static_cast<size_t>(id)]; }

const FloatFormat* Format(const std::string& word) {
  const auto spec = ParseMid(word);
  ULPSCOPE_CHECK(spec.has_value(), "unknown format word " + word);
  return spec->format;
}

/// True for operations that give their argument's values back: what was in a format before is in it after.
bool KeepsFormat(NodeKind kind) {
  return kind == NodeKind::kCast || kind == NodeKind::kStore || kind == NodeKind::kNeg ||
         kind == NodeKind::kView || kind == NodeKind::kFloor || kind == NodeKind::kCeil ||
         kind == NodeKind::kRound || kind == NodeKind::kTrunc || kind == NodeKind::kMinimum ||
         kind == NodeKind::kRanked;
}

/// A product of two tensors of the case whose significands fit float32 together is exact there.
bool ProductIsFloat32(const Plan& plan, const PlanNode& node) {
  int bits = 0;
  for (const int arg : node.args) {
    const PlanNode& factor = At(plan, plan.Root(arg));
    const FloatFormat* format = factor.kind == NodeKind::kInput ? FormatOf(factor.dtype) : nullptr;
    if (format == nullptr) return false;
    bits += format->precision;
  }
  return bits <= Binary32().precision;
}

const FloatFormat* OperationFormat(const Plan& plan, int id, const Choice& choice);

/// The format of what a choice may take: a constant is in any that holds it.
const FloatFormat* OfferedIn(const Plan& plan, int id, const Choice& choice) {
  if (const auto cut = choice.cuts.find(plan.Root(id)); cut != choice.cuts.end() && !cut->second.empty())
    return Format(cut->second.back());
  const PlanNode& node = At(plan, plan.Root(id));
  if (node.kind != NodeKind::kConstant) return OperationFormat(plan, id, choice);
  const DoubleNumber* number = node.If<DoubleNumber>();
  for (const FloatFormat* format : {&Bfloat16(), &Binary16(), &Binary32()}) {
    if (number != nullptr && IsRepresentable(number->value, *format)) return format;
  }
  return nullptr;
}

/// The format that values of `node` are in right after its operation under `choice`, before anything rounds
/// them; null when none is known to hold them. A widening cast keeps what it was given: rounding its result
/// to the narrow format again, or to anything in between, is the identity.
const FloatFormat* OperationFormat(const Plan& plan, int id, const Choice& choice) {
  const PlanNode& node = At(plan, id);
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
  // Known where one format holds either choice.
  if (node.kind == NodeKind::kChoose || node.kind == NodeKind::kLarger || node.kind == NodeKind::kSmaller ||
      node.kind == NodeKind::kFmod) {
    const FloatFormat *a = OfferedIn(plan, node.args[0], choice), *b = OfferedIn(plan, node.args[1], choice);
    if (a == nullptr || b == nullptr) return nullptr;
    return Holds(*a, *b) ? a : Holds(*b, *a) ? b : nullptr;
  }
  if (KeepsFormat(node.kind)) {
    const int argument = node.args.front();
    if (const auto cut = choice.cuts.find(argument); cut != choice.cuts.end() && !cut->second.empty())
      return Format(cut->second.back());
    return OperationFormat(plan, argument, choice);
  }
  // A quotient by a power of two has the bits of what is divided; in a format of a small range it may lose some.
  if (node.kind == NodeKind::kDiv) {
    const bool exact = IsPowerOfTwo(At(plan, plan.Root(node.args[1])));
    const FloatFormat* divided = exact ? OfferedIn(plan, node.args[0], choice) : nullptr;
    if (divided != nullptr && divided->precision >= Binary32().precision) return divided;
  }
  if (IsReduction(node.kind) || node.inner) {
    const AccSpec acc = *ParseAcc(choice.acc);
    // Partial sums are no wider than what they are combined in.
    return acc.combine != nullptr ? acc.combine : acc.format;
  }
  return node.kind == NodeKind::kMul && ProductIsFloat32(plan, node) ? &Binary32() : nullptr;
}

/// A step inside a composite op. The op's result is none: it has the program's name for it, or none at all
/// when it is the root.
bool IsStep(const PlanNode& node) {
  return node.inner && (node.name.empty() || node.name.find('.') != std::string::npos);
}

bool IsCutPoint(const PlanNode& node, StepsCut steps) {
  if (node.kind == NodeKind::kInput || node.kind == NodeKind::kConstant || node.kind == NodeKind::kView ||
      RoundsNothing(node.kind))
    return false;
  // A sign changes no bit: what is rounded there is what it is the sign of, and has a name of its own.
  const bool sign = node.kind == NodeKind::kNeg || node.kind == NodeKind::kAbs;
  return !IsStep(node) || node.materialised || (steps == StepsCut::kNamed && !node.name.empty() && !sign);
}

/// The format that the program itself asks for at a node, if any.
const FloatFormat* Asked(const PlanNode& node) {
  return node.kind == NodeKind::kCast ? FormatOf(node.dtype) : nullptr;
}

void AddUnique(std::vector<std::vector<std::string>>* options, std::vector<std::string> option) {
  if (std::find(options->begin(), options->end(), option) == options->end())
    options->push_back(std::move(option));
}

/// The format that holds every value of `id` exactly, whatever the model: widening a narrow value keeps it
/// narrow.
const FloatFormat* HeldIn(const Plan& plan, int id) {
  const PlanNode& node = At(plan, plan.Root(id));
  const FloatFormat* own = FormatOf(node.dtype);
  if (node.kind != NodeKind::kCast && node.kind != NodeKind::kStore) return own;
  const FloatFormat* from = HeldIn(plan, node.args[0]);
  return own != nullptr && from != nullptr && Holds(*own, *from) ? from : own;
}

std::string Own(const PlanNode& node) {
  const FloatFormat* declared = FormatOf(node.dtype);
  return declared == nullptr ? "" : std::string(declared->name);
}

/// A rounding through `word` before the declared store.
std::vector<std::string> Through(const std::string& word, const std::string& own) {
  return Holds(*Format(own), *Format(word)) ? std::vector<std::string>{word}
                                            : std::vector<std::string>{word, own};
}

/// The 16-bit format of a composite op's steps: the result's own where it is narrow, else bfloat16.
std::string NarrowOf(const Plan& plan, const ValuePath& path) {
  const FloatFormat* own = FormatOf(At(plan, path.root).dtype);
  return own != nullptr && own->precision <= 11 ? std::string(own->name) : "bfloat16";
}

/// What a backend may do with one intermediate. A lone cut point is tried at every format, several at the
/// likely ones.
std::vector<std::vector<std::string>> CutOptions(const Plan& plan, const ValuePath& path, int id) {
  const PlanNode& node = At(plan, id);
  std::vector<std::vector<std::string>> options{{}};
  const std::string own = Own(node);
  if (own.empty()) return options;
  if (node.handed_on) {
    const bool computes = node.kind != NodeKind::kCast && node.kind != NodeKind::kStore;
    if (computes && Format(own)->precision < Binary32().precision) AddUnique(&options, {"float32"});
    return options;
  }
  if (IsStep(node)) {
    AddUnique(&options, {NarrowOf(plan, path)});
    return options;
  }
  AddUnique(&options, {own});
  if (node.kind == NodeKind::kCast || node.kind == NodeKind::kStore) return options;
  const bool alone = path.cut_points.size() == 1;
  for (const char* word : {"bfloat16", "float32", "float16", "tf32"}) {
    const bool narrower = std::string_view(word) == "bfloat16" && Holds(*Format(own), *Format(word));
    const bool in_registers = std::string_view(word) == "float32" && Format(own)->precision < 24;
    if (alone || narrower || in_registers) AddUnique(&options, Through(word, own));
  }
  return options;
}

/// Cut points that behave alike (eight temporaries of one loop) share one choice.
std::string GroupKey(const PlanNode& node) {
  if (IsStep(node)) return node.name;
  if (node.handed_on) return "handed on:" + std::string(Name(node.dtype));
  const std::string kind = node.kind == NodeKind::kContract ? "contract"
                           : node.kind == NodeKind::kReduce ? "reduce"
                           : node.kind == NodeKind::kCast   ? "cast"
                           : node.kind == NodeKind::kStore  ? "store"
                                                            : "pointwise";
  return kind + ":" + std::string(Name(node.dtype));
}

using CutChoice = std::map<int, std::vector<std::string>>;

/// Everything stored as declared, sums rounded through `word` first: what a uniform backend does.
CutChoice UniformCuts(const Plan& plan, const ValuePath& path, const std::string& word) {
  CutChoice choice;
  for (const int cut : path.cut_points) {
    const PlanNode& node = At(plan, cut);
    const std::string own = Own(node);
    if (IsStep(node) || own.empty() || node.handed_on) continue;
    const bool through =
        word != "none" && node.kind != NodeKind::kCast && (IsReduction(node.kind) || word == "float32");
    choice[cut] = through ? Through(word, own) : std::vector<std::string>{own};
  }
  return choice;
}

/// The options of each group of cut points that share a choice.
struct CutGroup {
  std::vector<int> members;
  std::vector<std::vector<std::string>> options;
};

std::vector<CutGroup> CutGroups(const Plan& plan, const ValuePath& path) {
  std::map<std::string, std::vector<int>> groups;
  const bool few = path.cut_points.size() <= 3;
  for (const int cut : path.cut_points)
    groups[few ? std::to_string(cut) : GroupKey(At(plan, cut))].push_back(cut);
  constexpr double kMost = 100;
  double count = 1;
  std::vector<CutGroup> all;
  for (auto& [key, members] : groups) {
    auto options = CutOptions(plan, path, members.front());
    // Past the limit a group keeps two answers: unrounded, or as declared.
    if (count * static_cast<double>(options.size()) > kMost && options.size() > 2) options.resize(2);
    count *= static_cast<double>(options.size());
    all.push_back({.members = std::move(members), .options = std::move(options)});
  }
  return all;
}

/// At most so many: they double with each group, and to list them all to count them would cost more than to judge with them.
double CountCuts(const Plan& plan, const ValuePath& path) {
  auto count = static_cast<double>(MidWords().size());
  double product = 1;
  for (const CutGroup& group : CutGroups(plan, path)) product *= static_cast<double>(group.options.size());
  return count + product;
}

std::vector<CutChoice> EnumerateCuts(const Plan& plan, const ValuePath& path) {
  std::vector<CutChoice> all{{}};
  for (const CutGroup& group : CutGroups(plan, path)) {
    std::vector<CutChoice> next;
    for (const auto& option : group.options) {
      for (const CutChoice& before : all) {
        CutChoice choice = before;
        for (const int cut : group.members) choice[cut] = option;
        next.push_back(std::move(choice));
      }
    }
    all = std::move(next);
  }
  for (const auto& word : MidWords()) all.push_back(UniformCuts(plan, path, word));
  // Without a cut point they are all the same.
  std::set<CutChoice> seen;
  std::erase_if(all, [&](const CutChoice& choice) { return !seen.insert(choice).second; });
  return all;
}

/// Of more than 16 bits: what `in=WORD` for every operand means.
bool IsWide(const FloatFormat* format) { return format != nullptr && format->precision > 11; }

/// Each of `all` with every conversion of the scalars on the path besides.
void AddScalars(const ValuePath& path, std::vector<std::map<std::string, std::string>>* all) {
  for (const auto& [scalar, words] : path.scalars) {
    const size_t count = all->size();
    for (const auto& word : words) {
      for (size_t i = 0; i < count; ++i) {
        all->push_back((*all)[i]);
        all->back()[scalar] = word;
      }
    }
  }
}

std::vector<std::map<std::string, std::string>> EnumerateIn(const ValuePath& path) {
  std::vector<std::string> wide;
  for (const auto& [operand, dtype] : path.operands) {
    if (FormatOf(dtype) != nullptr) wide.push_back(operand);
  }
  std::vector<std::map<std::string, std::string>> all{{}};
  for (const auto& word : InWords()) {
    if (word == "as_is" || wide.empty()) continue;
    // A format of as many bits and another range changes nothing but what overflows.
    const RoundSpec spec = *ParseIn(word);
    const auto loses = [&](const std::string& operand) {
      const int bits = FormatOf(path.operands.at(operand))->precision, each = spec.format->precision;
      // Pieces that hold the operand, of which every product is kept, are the operand: a product of piece i and piece j has
      // weight i + j, and three passes keep weights up to 1, six up to 2, nine all.
      const int pieces = (bits + each - 1) / each;
      const int kept = spec.passes == 3 ? 1 : spec.passes == 6 ? 2 : 4;
      if (spec.pieces > 1 && pieces <= spec.pieces && 2 * (pieces - 1) <= kept) return false;
      return bits > each;
    };
    std::map<std::string, std::string> every;
    for (const auto& operand : wide) {
      if (loses(operand)) every[operand] = word;
    }
    if (every.empty()) continue;
    all.push_back(std::move(every));
    if (wide.size() > 1 && (word == "bfloat16_rne" || word == "tf32_rne" || word == "float16_rne")) {
      for (const auto& operand : wide) {
        if (loses(operand)) all.push_back({{operand, word}});
      }
    }
  }
  AddScalars(path, &all);
  return all;
}

/// Precision of an operand after its input rounding.
int OperandPrecision(const ValuePath& path, const Choice& choice, const std::string& operand) {
  const auto in = choice.in.find(operand);
  if (in != choice.in.end()) {
    if (const auto spec = ParseIn(in->second); spec && spec->format != nullptr)
      return spec->format->precision;
  }
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

}  // namespace

std::string NameOf(const Plan& plan, int node) {
  const PlanNode& root = At(plan, plan.Root(node));
  if (const TensorRead* read = root.If<TensorRead>()) return read->tensor;
  if (!root.name.empty()) return root.name;
  return "step" + std::to_string(plan.Root(node));
}

ValuePath PathOf(const Plan& plan, int node, StepsCut steps) {
  ValuePath path;
  path.root = plan.Root(node);
  std::set<int> seen;
  const std::function<void(int)> visit = [&](int id) {
    if (!seen.insert(id).second) return;
    for (const int arg : At(plan, id).args) visit(arg);
  };
  visit(path.root);
  path.nodes.assign(seen.begin(), seen.end());
  for (const int id : path.nodes) {
    const PlanNode& current = At(plan, id);
    if (current.inner) path.has_inner = true;
    if (IsFunction(current.kind)) path.approximate = true;
    if (current.is_scalar()) {
      const auto& [value, scalar] = current.Get<DoubleNumber>();
      for (const char* word : {"float32_rne", "bfloat16_rne", "float16_rne"}) {
        const double rounded = ParseIn(word)->Apply(value);
        // Nobody converts a number to a format in which nothing is left of it.
        if (rounded != value && rounded != 0 && std::isfinite(rounded)) path.scalars[scalar].insert(word);
      }
    }
    if (IsReduction(current.kind)) {
      path.reductions.push_back(id);
      path.reduction_length = std::max(path.reduction_length, current.terms());
      path.terms += current.terms();
    }
    if (current.kind == NodeKind::kContract) {
      path.has_products = true;
      for (size_t i = 0; i < 2; ++i) {
        const PlanNode& operand = At(plan, plan.Root(current.args[i]));
        const FloatFormat* held = HeldIn(plan, current.args[i]);
        if (operand.kind != NodeKind::kConstant && held != nullptr)
          path.operands[NameOf(plan, current.args[i])] = *ParseDType(held->name);
      }
    }
    // A step on constants alone is a number that every kernel has as its own.
    const bool number =
        !current.args.empty() && std::all_of(current.args.begin(), current.args.end(), [&](int arg) {
          return At(plan, plan.Root(arg)).kind == NodeKind::kConstant;
        });
    if (id != path.root && !number && IsCutPoint(current, steps)) path.cut_points.push_back(id);
  }
  // A plain sum of a tensor may round what it takes, as a product does. Composites have names for their steps instead.
  if (path.reductions.size() == 1) {
    const PlanNode& sum = At(plan, path.reductions.front());
    const PlanNode& summed = At(plan, plan.Root(sum.args[0]));
    if (sum.kind == NodeKind::kReduce && summed.kind == NodeKind::kInput && FormatOf(summed.dtype) != nullptr)
      path.operands[summed.Get<TensorRead>().tensor] = summed.dtype;
  }
  return path;
}

int64_t WorkOf(const Plan& plan, const ValuePath& path, int64_t elements) {
  std::map<int, int64_t> needed{{path.root, std::min(elements, plan.size(path.root))}};
  int64_t work = 0;
  // Operands have lower numbers than what reads them.
  for (auto id = path.nodes.rbegin(); id != path.nodes.rend(); ++id) {
    const PlanNode& node = At(plan, *id);
    const int64_t terms = IsReduction(node.kind) ? std::max<int64_t>(1, node.terms()) : 1;
    work += needed[*id] * terms;
    for (const int arg : node.args) needed[arg] = std::min(plan.size(arg), needed[arg] + needed[*id] * terms);
  }
  return work;
}

Choice Canonical(const Plan& plan, const ValuePath& path, Choice choice) {
  std::erase_if(choice.in, [&](const auto& entry) {
    if (const auto scalar = path.scalars.find(entry.first); scalar != path.scalars.end())
      return !scalar->second.contains(entry.second);
    const auto operand = path.operands.find(entry.first);
    if (operand == path.operands.end() || entry.second == "as_is") return true;
    const FloatFormat* format = FormatOf(operand->second);
    const RoundSpec spec = *ParseIn(entry.second);
    return format == nullptr || (spec.format != nullptr && Holds(*spec.format, *format));
  });
  if (path.reductions.empty() && !path.has_inner) choice.acc = "exact";
  if (!path.has_products) choice.prod = "exact";
  if (choice.prod != "exact" && ProductsFit(path, choice, *Format(choice.prod))) choice.prod = "exact";
  // A product that is rounded anyway when it enters a narrower or equal accumulator one by one is still
  // another model: round(round(ab) + s) is not round(ab + s). But a float64 product of float32 operands is
  // exact.

  const auto drop_identities = [](const FloatFormat* current, std::vector<std::string>* words) {
    std::vector<std::string> kept;
    for (const auto& word : *words) {
      const FloatFormat* format = Format(word);
      if (current != nullptr && Holds(*format, *current)) continue;
      kept.push_back(word);
      current = format;
    }
    *words = std::move(kept);
  };
  // A copy into another dtype computes nothing: a rounding before its store is a rounding of what it copies.
  const PlanNode& root = At(plan, path.root);
  if (choice.mid != "none" && (root.kind == NodeKind::kCast || root.kind == NodeKind::kStore)) {
    const int source = plan.Root(root.args[0]);
    if (std::find(path.cut_points.begin(), path.cut_points.end(), source) != path.cut_points.end()) {
      choice.cuts[source].push_back(choice.mid);
      choice.mid = "none";
    }
  }
  for (const int cut : path.cut_points)
    drop_identities(OperationFormat(plan, cut, choice), &choice.cuts[cut]);
  std::erase_if(choice.cuts, [&](const auto& entry) {
    return entry.second.empty() ||
           std::find(path.cut_points.begin(), path.cut_points.end(), entry.first) == path.cut_points.end();
  });
  const FloatFormat* before = OperationFormat(plan, path.root, choice);
  if (choice.mid != "none" && before != nullptr && Holds(*Format(choice.mid), *before)) choice.mid = "none";
  const auto out = ParseOut(choice.out);
  // Truncating what is already in the format is no truncation; rounding to nearest into it twice is rounding
  // once.
  const FloatFormat* stored_from = choice.mid != "none" ? Format(choice.mid) : before;
  bool nearest = out && out->rounding == Rounding::kNearestEven;
  if (out && !nearest && stored_from != nullptr && Holds(*out->format, *stored_from)) {
    choice.out = std::string(out->format->name) + "_rne";
    nearest = true;
  }
  // Behind a function that libraries compute to a few units of a format, the direction of the last rounding to it is none of
  // what can be known.
  if (out && !nearest && path.approximate && out->format->precision >= Binary32().precision) {
    choice.out = std::string(out->format->name) + "_rne";
    nearest = true;
  }
  if (choice.mid != "none" && nearest && Format(choice.mid)->name == out->format->name) choice.mid = "none";
  const bool stores = std::any_of(choice.cuts.begin(), choice.cuts.end(), [&](const auto& entry) {
    return At(plan, entry.first).kind != NodeKind::kCast;
  });
  if (!stores) choice.mode = "_rne";
  return choice;
}

PrecisionModel ModelOf(const Plan& plan, const ValuePath& path, const Choice& choice) {
  PrecisionModel model;
  model.in = choice.in;
  model.prod = choice.prod;
  model.acc = choice.acc;
  model.mid = choice.mid;
  model.out = choice.out;
  const FloatFormat* coarsest = choice.mid == "none" ? nullptr : Format(choice.mid);
  for (const auto& [cut, words] : choice.cuts) {
    const FloatFormat* own = nullptr;
    for (const auto& word : words) {
      if (own == nullptr || Format(word)->precision < own->precision) own = Format(word);
    }
    model.cuts[NameOf(plan, cut)] = std::string(own->name);
    const bool asked = Asked(At(plan, cut)) == own;
    if (!asked && (coarsest == nullptr || own->precision < coarsest->precision)) coarsest = own;
  }
  if (!model.cuts.empty() && choice.mid != "none") model.cuts[NameOf(plan, path.root)] = choice.mid;
  if (coarsest != nullptr) model.mid = std::string(coarsest->name);
  return model;
}

namespace {

/// An operand that is taken as it is loses the subnormals of its own format.
RoundSpec InOf(const std::string& word, const FloatFormat* held) {
  RoundSpec spec = *ParseIn(word);
  if (spec.format == nullptr && !spec.none() && held != nullptr) spec.daz_below = held->emin;
  return spec;
}

}  // namespace

Binding BindingOf(const Plan& plan, const ValuePath& path, const Choice& choice) {
  Binding binding;
  binding.store.resize(plan.nodes.size());
  binding.in.resize(plan.nodes.size());
  binding.prod = *ParseProd(choice.prod);
  binding.acc = *ParseAcc(choice.acc);
  const Rounding mode = choice.mode == "_rz"    ? Rounding::kTowardZero
                        : choice.mode == "_rna" ? Rounding::kNearestAway
                                                : Rounding::kNearestEven;
  for (const int id : path.reductions) {
    const PlanNode& node = At(plan, id);
    for (size_t i = 0; i < (node.kind == NodeKind::kContract ? 2u : 1u); ++i) {
      if (const auto in = choice.in.find(NameOf(plan, node.args[i])); in != choice.in.end())
        binding.in[static_cast<size_t>(id)][i] = InOf(in->second, HeldIn(plan, node.args[i]));
    }
  }
  for (const auto& [cut, words] : choice.cuts) {
    for (const auto& word : words) {
      RoundSpec spec = *ParseMid(word);
      // A truncating backend truncates its intermediate stores too; what the program casts is rounded as
      // casts are.
      if (At(plan, cut).kind != NodeKind::kCast && &word == &words.back()) spec.rounding = mode;
      binding.store[static_cast<size_t>(cut)].push_back(spec);
    }
  }
  auto& last = binding.store[static_cast<size_t>(path.root)];
  if (choice.mid != "none") last.push_back(*ParseMid(choice.mid));
  if (const auto out = ParseOut(choice.out)) last.push_back(*out);
  for (const auto& [scalar, words] : path.scalars) {
    if (const auto in = choice.in.find(scalar); in != choice.in.end())
      binding.scalars[scalar] = *ParseIn(in->second);
  }
  for (const auto& [operand, word] : choice.in) binding.term_key += operand + ":" + word + ",";
  binding.term_key += choice.prod;
  return binding;
}

namespace {

/// Kernels split sums of hundreds of terms or more: below this length split-K is no model of a sum. Tried there, it
/// would join every set that holds a rounding of the result.
constexpr int64_t kLeastSplit = 128;

/// Partial sums of products are seen by their store; those of single values only where the values are wider, and no step
/// comes after the sum.
bool ShowsPartials(const Plan& plan, const ValuePath& path, const AccSpec& acc) {
  if (path.has_products) return true;
  if (At(plan, path.root).kind != NodeKind::kReduce) return false;
  return std::any_of(path.operands.begin(), path.operands.end(), [&](const auto& operand) {
    return FormatOf(operand.second)->precision > acc.partial->precision;
  });
}

/// The accumulators that a value's path can have been summed in. Partial sums of split-K are stored in the operands'
/// format or the result's; units of 13 fraction bits take float8.
std::vector<std::string> AccumulatorsFor(const Plan& plan, const ValuePath& path, DType observed) {
  if (path.reductions.empty() && !path.has_inner) return {"exact"};
  // Steps of a composite without a sum have a format, but no accumulator.
  if (path.reductions.empty()) return {"exact", "float64", "float32", "float16", "bfloat16"};
  std::set<std::string_view> formats;
  bool float8 = false;
  const auto add = [&](DType dtype) {
    const FloatFormat* format = FormatOf(dtype);
    if (format == nullptr) return;
    formats.insert(format->name);
    float8 = float8 || format->precision < 8;
  };
  for (const auto& [operand, dtype] : path.operands) add(dtype);
  add(At(plan, path.root).dtype);
  add(observed);
  std::vector<std::string> words;
  for (const auto& word : AccWords()) {
    const AccSpec acc = *ParseAcc(word);
    if (acc.partial != nullptr && (path.reduction_length < kLeastSplit ||
                                   !formats.contains(acc.partial->name) || !ShowsPartials(plan, path, acc)))
      continue;
    if (acc.block > 0 && (!path.has_products || (acc.fraction < 23 && !float8) ||
                          (acc.format->precision < 24 && !formats.contains(acc.format->name))))
      continue;
    words.push_back(word);
  }
  return words;
}

/// Accumulators and input roundings that kernels combine. Matrix units take operands of at most 11 bits; an
/// operand split into pieces, a compensated sum and partial sums of split-K come with products in a plain
/// sum.
bool GoTogether(const ValuePath& path, const std::map<std::string, std::string>& in, const std::string& prod,
                const AccSpec& acc) {
  int widest = 0;
  bool split = false, rounded = false;
  for (const auto& [operand, dtype] : path.operands) {
    const auto word = in.find(operand);
    const auto spec = word == in.end() ? std::optional<RoundSpec>() : ParseIn(word->second);
    const FloatFormat* format = spec && spec->format != nullptr ? spec->format : FormatOf(dtype);
    split = split || (spec && spec->pieces > 1);
    rounded = rounded || spec.has_value();
    widest = std::max(widest, spec && spec->pieces > 1 ? 24 : format == nullptr ? 53 : format->precision);
  }
  if (split)
    return path.has_products && acc.binary() && acc.format->precision == 24 &&
           acc.rounding == Rounding::kNearestEven && prod == "exact";
  if (acc.exact() || acc.binary()) return true;
  if (prod != "exact") return false;
  return acc.block > 0 ? widest <= 11 : !rounded;
}

}  // namespace

int64_t CountChoices(const Plan& plan, const ValuePath& path, DType observed) {
  constexpr double kMost = 0x1p40;
  const size_t prods = path.has_products ? ProdWords().size() : 1;
  const auto others =
      static_cast<double>(EnumerateIn(path).size() * prods * AccumulatorsFor(plan, path, observed).size() *
                          MidWords().size() * 2);
  return static_cast<int64_t>(std::min(kMost, others * CountCuts(plan, path)));
}

int64_t CountNaturals(const Plan& plan, const ValuePath& path) {
  constexpr double kMost = 0x1p40;
  double scalars = 1;
  for (const auto& [scalar, words] : path.scalars) scalars *= 1 + static_cast<double>(words.size());
  return static_cast<int64_t>(std::min(kMost, scalars * CountCuts(plan, path)));
}

std::vector<Choice> EnumerateChoices(const Plan& plan, const ValuePath& path, DType observed) {
  std::vector<Choice> choices;
  std::set<std::string> seen;
  const auto cuts = EnumerateCuts(plan, path);
  const auto accs = AccumulatorsFor(plan, path, observed);
  const auto prods = path.has_products ? ProdWords() : std::vector<std::string>{"exact"};
  const NodeKind root = At(plan, path.root).kind;
  const bool ties =
      !path.has_inner && path.cut_points.empty() &&
      (IsReduction(root) || root == NodeKind::kAdd || root == NodeKind::kSub || root == NodeKind::kMul);
  for (const auto& in : EnumerateIn(path)) {
    for (const auto& prod : prods) {
      for (const auto& acc : accs) {
        const AccSpec spec = *ParseAcc(acc);
        if (!GoTogether(path, in, prod, spec)) continue;
        for (const auto& cut : cuts) {
          for (const auto& mid : MidWords()) {
            // A partial sum's rounding and a compensated sum are what such kernels do before their store.
            if (mid != "none" && (spec.partial != nullptr || spec.compensated)) continue;
            for (const char* mode : {"_rne", "_rz", "_rna"}) {
              // Ties away from zero: what adding half of the last place and cutting gives. A kernel that does
              // so does it once, to a wide sum or product; of functions no result is a tie.
              const bool plain = ties && in.empty() && prod == "exact" && mid == "none" &&
                                 (spec.exact() || (spec.binary() && spec.wide()));
              if (std::string_view(mode) == "_rna" && !plain) continue;
              Choice choice{.in = in,
                            .prod = prod,
                            .acc = acc,
                            .mid = mid,
                            .out = std::string(Name(observed)) + mode,
                            .cuts = cut,
                            .mode = mode};
              // A cast that the program asks for is rounded as casts are, whatever the mode of the stores
              // before it.
              if (At(plan, path.root).kind == NodeKind::kCast)
                choice.out = std::string(Name(observed)) + "_rne";
              choice = Canonical(plan, path, std::move(choice));
              std::string key = ModelOf(plan, path, choice).Name() + choice.mode;
              for (const auto& [id, words] : choice.cuts) {
                key += "|" + std::to_string(id);
                for (const auto& word : words) key += ">" + word;
              }
              if (seen.insert(std::move(key)).second) choices.push_back(std::move(choice));
            }
          }
        }
      }
    }
  }
  return choices;
}

std::vector<Choice> NaturalChoices(const Plan& plan, const ValuePath& path, DType observed) {
  std::vector<Choice> choices;
  std::set<std::string> seen;
  const bool sums = !path.reductions.empty() || path.has_inner;
  // A product in float32 that is then stored in 16 bits is rounded twice: few bits times a number with many lie near ties.
  std::vector<std::string> mids{"none"};
  const PlanNode& root = At(plan, path.root);
  if (!IsReduction(root.kind) && root.kind != NodeKind::kCast &&
      FormatOf(observed)->precision < Binary32().precision)
    mids.emplace_back("float32");
  for (const auto& cut : EnumerateCuts(plan, path)) {
    for (const std::string& mid : mids) {
      Choice choice{.in = {},
                    .prod = "exact",
                    .acc = sums ? "float32" : "exact",
                    .mid = mid,
                    .out = std::string(Name(observed)) + "_rne",
                    .cuts = cut,
                    .mode = "_rne"};
      choice = Canonical(plan, path, std::move(choice));
      if (seen.insert(ModelOf(plan, path, choice).Name()).second) choices.push_back(std::move(choice));
    }
  }
  return choices;
}

std::vector<Choice> AsWritten(const Plan& plan, const ValuePath& path, DType observed) {
  const bool sums = !path.reductions.empty() || path.has_inner;
  return {Canonical(plan, path,
                    {.in = {},
                     .prod = "exact",
                     .acc = sums ? "float32" : "exact",
                     .mid = "none",
                     .out = std::string(Name(observed)) + "_rne",
                     .cuts = UniformCuts(plan, path, "none"),
                     .mode = "_rne"})};
}

std::vector<Choice> NaturalBank(const Plan& plan, const ValuePath& path, DType observed) {
  std::vector<std::map<std::string, std::string>> scalars{{}};
  AddScalars(path, &scalars);
  std::vector<Choice> choices;
  std::set<std::string> seen;
  for (const Choice& plain : NaturalChoices(plan, path, observed)) {
    for (const auto& in : scalars) {
      Choice choice = plain;
      choice.in = in;
      choice = Canonical(plan, path, std::move(choice));
      if (seen.insert(ModelOf(plan, path, choice).Name()).second) choices.push_back(std::move(choice));
    }
  }
  return choices;
}

std::vector<Choice> EnumerateSteps(const Plan& plan, const ValuePath& path, DType observed, size_t most) {
  constexpr size_t kMostSteps = 16;  // what their sets are numbered with
  std::map<std::string, std::vector<int>> groups;
  for (const int cut : path.cut_points) {
    if (IsStep(At(plan, cut))) groups[At(plan, cut).name].push_back(cut);
  }
  if (groups.size() > kMostSteps) return {};
  const size_t all = (size_t{1} << groups.size()) - 1;
  std::vector<size_t> sets;
  for (size_t set = 1; set <= all; ++set) sets.push_back(set);
  // All steps, single ones, all but single ones, pairs and so on: what one decision in a kernel does.
  const auto rank = [&](size_t set) {
    const auto chosen = static_cast<size_t>(std::popcount(set));
    return std::min(2 * chosen, 2 * (groups.size() - chosen) + 1);
  };
  std::stable_sort(sets.begin(), sets.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  if (sets.size() > most) sets.resize(most);
  const CutChoice declared = UniformCuts(plan, path, "none");
  std::vector<Choice> choices;
  std::set<std::string> seen;
  for (const size_t set : sets) {
    Choice choice{.in = {},
                  .prod = "exact",
                  .acc = "float32",
                  .mid = "none",
                  .out = std::string(Name(observed)) + "_rne",
                  .cuts = declared,
                  .mode = "_rne"};
    size_t bit = 1;
    for (const auto& [name, nodes] : groups) {
      for (const int node : nodes) {
        if ((set & bit) != 0) choice.cuts[node] = {NarrowOf(plan, path)};
      }
      bit <<= 1;
    }
    choice = Canonical(plan, path, std::move(choice));
    if (seen.insert(ModelOf(plan, path, choice).Name()).second) choices.push_back(std::move(choice));
  }
  return choices;
}

std::vector<Choice> EnumerateFlushing(const Plan& plan, const ValuePath& path, DType observed) {
  std::vector<Choice> choices;
  if (!path.has_products) return choices;
  std::map<std::string, std::string> dropped;
  for (const auto& [operand, dtype] : path.operands) {
    if (FormatOf(dtype) != nullptr) dropped[operand] = "as_is+daz";
  }
  for (const Choice& plain : EnumerateChoices(plan, path, observed)) {
    const AccSpec acc = *ParseAcc(plain.acc);
    if (!plain.in.empty() || !acc.binary() || acc.format->precision < 24) continue;
    Choice sums = plain, operands = plain;
    sums.acc += "+ftz";
    operands.in = dropped;
    Choice both = sums;
    both.in = dropped;
    for (Choice* choice : {&both, &sums, &operands}) choices.push_back(std::move(*choice));
  }
  return choices;
}

Choice ChoiceOfProgramModel(const Plan& plan, const ValuePath& path, const PrecisionModel& model,
                            DType observed) {
  const auto mode = ParseOut(model.out)->rounding;
  const std::string suffix = mode == Rounding::kTowardZero    ? "_rz"
                             : mode == Rounding::kNearestAway ? "_rna"
                                                              : "_rne";
  Choice choice{.in = {},
                .prod = model.prod,
                .acc = model.acc,
                .mid = "none",
                .out = std::string(Name(observed)) + suffix,
                .cuts = {},
                .mode = suffix};
  const auto every = model.in.find("*");
  for (const auto& [operand, dtype] : path.operands) {
    if (const auto own = model.in.find(operand); own != model.in.end())
      choice.in[operand] = own->second;
    else if (every != model.in.end() && IsWide(FormatOf(dtype)))
      choice.in[operand] = every->second;
  }
  const auto rounded_after = [&](const PlanNode& node) {
    return (IsReduction(node.kind) && !node.inner) || (node.inner && !IsStep(node));
  };
  const PlanNode& root = At(plan, path.root);
  if (rounded_after(root) || (root.inner && path.has_inner)) choice.mid = model.mid;
  if (root.kind == NodeKind::kCast) choice.out = std::string(Name(observed)) + "_rne";
  for (const int cut : path.cut_points) {
    const PlanNode& node = At(plan, cut);
    if (IsStep(node)) continue;
    auto& words = choice.cuts[cut];
    if (rounded_after(node) && model.mid != "none") words.push_back(model.mid);
    if (FormatOf(node.dtype) != nullptr) words.emplace_back(Name(node.dtype));
  }
  return Canonical(plan, path, std::move(choice));
}

Binding BindingOfProgramModel(const Plan& plan, const PrecisionModel& model) {
  Binding binding;
  binding.store.resize(plan.nodes.size());
  binding.in.resize(plan.nodes.size());
  binding.prod = *ParseProd(model.prod);
  binding.acc = *ParseAcc(model.acc);
  const Rounding mode = ParseOut(model.out)->rounding;
  const auto every = model.in.find("*");
  // The last step of a composite op (the one that is stored in the op's own dtype) is what a consumer outside
  // sees.
  std::set<int> inside;
  for (size_t id = 0; id < plan.nodes.size(); ++id) {
    const PlanNode& node = plan.nodes[id];
    if (node.inner) {
      for (const int arg : node.args) inside.insert(plan.Root(arg));
    }
  }
  for (size_t id = 0; id < plan.nodes.size(); ++id) {
    const PlanNode& node = plan.nodes[id];
    if (node.kind == NodeKind::kInput || node.kind == NodeKind::kConstant || node.kind == NodeKind::kView)
      continue;
    if (node.kind == NodeKind::kContract) {
      for (size_t i = 0; i < 2; ++i) {
        const auto own = model.in.find(NameOf(plan, node.args[i]));
        if (own != model.in.end())
          binding.in[id][i] = InOf(own->second, HeldIn(plan, node.args[i]));
        else if (every != model.in.end() && IsWide(HeldIn(plan, node.args[i])))
          binding.in[id][i] = *ParseIn(every->second);
      }
    }
    const bool step_inside = node.inner && (!node.name.empty() && node.name.find('.') != std::string::npos &&
                                            inside.contains(static_cast<int>(id)));
    if (step_inside) continue;
    auto& store = binding.store[id];
    if ((IsReduction(node.kind) || node.inner) && model.mid != "none") store.push_back(*ParseMid(model.mid));
    if (const FloatFormat* format = FormatOf(node.dtype)) {
      store.push_back({.format = format,
                       .rounding = node.kind == NodeKind::kCast ? Rounding::kNearestEven : mode,
                       .subnormals = Subnormals::kGradual});
    }
  }
  return binding;
}

}  // namespace ulpscope
