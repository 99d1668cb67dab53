// Enumerates precision models: the operands, products, accumulators and output roundings that kernels combine.
#include "oracles/hypothesis.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "harness/base/find.h"
#include "oracles/cuts.h"

namespace ulpscope {
namespace {

using Readings = std::map<std::string, RoundSpec>;

/// Each of `all` with every conversion of the scalars on the path besides.
void AddScalars(const ValuePath& path, std::vector<Readings>* all) {
  for (const auto& [scalar, conversions] : path.scalars) {
    const size_t count = all->size();
    for (const RoundSpec& conversion : conversions) {
      for (size_t i = 0; i < count; ++i) {
        all->push_back((*all)[i]);
        all->back()[scalar] = conversion;
      }
    }
  }
}

std::vector<Readings> EnumerateIn(const ValuePath& path) {
  std::vector<std::string> wide;
  for (const auto& [operand, dtype] : path.operands) {
    if (FormatOf(dtype) != nullptr) wide.push_back(operand);
  }
  std::vector<Readings> all{{}};
  for (const auto& word : InWords()) {
    const RoundSpec spec = *ParseIn(word);
    if (spec.none() || wide.empty()) continue;
    // A format of as many bits and another range has no effect except overflow.
    const auto loses = [&](const std::string& operand) {
      const int bits = FormatOf(path.operands.at(operand))->precision, each = spec.format->precision;
      // If the pieces hold the whole operand, and every product is kept, splitting has no effect: a product of piece i
      // and piece j has weight i + j, and three passes keep weights up to 1, six up to 2, nine all.
      const int pieces = (bits + each - 1) / each;
      const int kept = spec.passes == 3 ? 1 : spec.passes == 6 ? 2 : 4;
      if (spec.pieces > 1 && pieces <= spec.pieces && 2 * (pieces - 1) <= kept) return false;
      return bits > each;
    };
    Readings every;
    for (const auto& operand : wide) {
      if (loses(operand)) every[operand] = spec;
    }
    if (every.empty()) continue;
    all.push_back(std::move(every));
    if (wide.size() > 1 && spec.to_nearest() && spec.pieces == 1) {
      for (const auto& operand : wide) {
        if (loses(operand)) all.push_back({{operand, spec}});
      }
    }
  }
  AddScalars(path, &all);
  return all;
}

/// Kernels split sums of hundreds of terms or more: below this length split-K is no model of a sum. Tried there, it
/// would join every set that holds a rounding of the result.
constexpr int64_t kLeastSplit = 128;

/// Roundings of partial sums of products are visible; those of single values only if the values are wider, and no step
/// comes after the sum.
bool ShowsPartials(const Plan& plan, const ValuePath& path, const AccSpec& acc) {
  if (path.has_products) return true;
  if (plan.at(path.root).kind != NodeKind::kReduce) return false;
  return std::ranges::any_of(path.operands, [&](const auto& operand) {
    return FormatOf(operand.second)->precision > acc.partial->precision;
  });
}

/// The possible accumulators on a value's path. Partial sums of split-K are stored in the operands' format or the
/// result's; units of 13 fraction bits take float8.
std::vector<AccSpec> AccumulatorsFor(const Plan& plan, const ValuePath& path, DType observed) {
  if (path.reductions.empty() && !path.has_inner) return {AccSpec{}};
  // Steps of a composite without a sum have a format, but no accumulator.
  if (path.reductions.empty())
    return {AccSpec{}, SumsIn(Binary64()), SumsIn(Binary32()), SumsIn(Binary16()), SumsIn(Bfloat16())};
  std::set<std::string_view> formats;
  bool float8 = false;
  const auto add = [&](DType dtype) {
    const FloatFormat* format = FormatOf(dtype);
    if (format == nullptr) return;
    formats.insert(format->name);
    float8 = float8 || format->precision < 8;
  };
  for (const auto& [operand, dtype] : path.operands) add(dtype);
  add(plan.at(path.root).dtype);
  add(observed);
  // A sum that one block holds is rounded once, into the format of the result: that is its output rounding, and no
  // narrow sum.
  const PlanNode& root = plan.at(path.root);
  const bool alone =
      IsReduction(root.kind) && root.args.size() <= 2 && root.alpha() == 1 && path.reductions.size() == 1;
  const auto is_store = [&](const AccSpec& acc) {
    return alone && acc.block > 0 && acc.format->precision < Binary32().precision &&
           *acc.format == *FormatOf(observed) && path.reduction_length > 1 &&
           path.reduction_length <= acc.block;
  };
  std::vector<AccSpec> accs;
  for (const auto& word : AccWords()) {
    const AccSpec acc = *ParseAcc(word);
    if (is_store(acc)) continue;
    if (acc.partial != nullptr && (path.reduction_length < kLeastSplit ||
                                   !formats.contains(acc.partial->name) || !ShowsPartials(plan, path, acc)))
      continue;
    if (acc.block > 0 && (!path.has_products || (acc.fraction < 23 && !float8) ||
                          (acc.format->precision < 24 && !formats.contains(acc.format->name))))
      continue;
    accs.push_back(acc);
  }
  return accs;
}

/// Accumulators and input roundings that kernels combine. Matrix units take operands of at most 11 bits; an
/// operand split into pieces, a compensated sum and partial sums of split-K come with products in a plain
/// sum.
bool GoTogether(const ValuePath& path, const Readings& in, const RoundSpec& prod, const AccSpec& acc) {
  int widest = 0;
  bool split = false, rounded = false;
  for (const auto& [operand, dtype] : path.operands) {
    const RoundSpec* spec = Lookup(in, operand);
    const FloatFormat* format = spec != nullptr && spec->format != nullptr ? spec->format : FormatOf(dtype);
    const bool in_pieces = spec != nullptr && spec->pieces > 1;
    split = split || in_pieces;
    rounded = rounded || spec != nullptr;
    widest = std::max(widest, in_pieces ? 24 : format == nullptr ? 53 : format->precision);
  }
  if (split)
    return path.has_products && acc.binary() && acc.format->precision == 24 &&
           acc.rounding == Rounding::kNearestEven && prod.none();
  if (acc.exact() || acc.binary()) return true;
  if (!prod.none()) return false;
  return acc.block > 0 ? widest <= 11 : !rounded;
}

}  // namespace

std::string KeyOf(const Choice& choice) {
  std::string key(Name(choice.mode));
  for (const auto& [id, formats] : choice.cuts) {
    key += "|" + std::to_string(id);
    for (const FloatFormat* format : formats) key += ">" + std::string(format->name);
  }
  return key;
}

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
  std::vector<RoundSpec> prods{{}}, mids;
  if (path.has_products)
    prods = Mapped<RoundSpec>(ProdWords(), [](const auto& word) { return *ParseProd(word); });
  for (const auto& word : MidWords()) mids.push_back(*ParseMid(word));
  const NodeKind root = plan.at(path.root).kind;
  const bool ties =
      !path.has_inner && path.cut_points.empty() &&
      (IsReduction(root) || root == NodeKind::kAdd || root == NodeKind::kSub || root == NodeKind::kMul);
  for (const auto& in : EnumerateIn(path)) {
    for (const auto& prod : prods) {
      for (const AccSpec& acc : accs) {
        if (!GoTogether(path, in, prod, acc)) continue;
        for (const auto& cut : cuts) {
          for (const RoundSpec& mid : mids) {
            // Kernels with partial sums or compensated sums make no other rounding before the output.
            if (!mid.none() && (acc.partial != nullptr || acc.in_two_words())) continue;
            for (const Rounding mode :
                 {Rounding::kNearestEven, Rounding::kTowardZero, Rounding::kNearestAway}) {
              // Ties away from zero: the effect of adding half of the last place and truncating. A kernel that does so
              // does it once, to a wide sum or product; no result of a function is a tie.
              const bool plain = ties && in.empty() && prod.none() && mid.none() &&
                                 (acc.exact() || (acc.binary() && acc.wide()));
              if (mode == Rounding::kNearestAway && !plain) continue;
              Choice choice{.in = in,
                            .prod = prod,
                            .acc = acc,
                            .mid = mid,
                            .out = {.format = FormatOf(observed), .rounding = mode},
                            .cuts = cut,
                            .mode = mode};
              // A cast that the program requests is rounded as casts are, whatever the mode of the roundings before it.
              if (plan.at(path.root).kind == NodeKind::kCast) choice.out = ToNearest(*FormatOf(observed));
              choice = Canonical(plan, path, std::move(choice));
              std::string key = ModelOf(plan, path, choice).Name() + KeyOf(choice);
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
  // A product in float32 with a 16-bit output is rounded twice: few bits times a number with many lie near ties.
  std::vector<RoundSpec> mids{{}};
  const PlanNode& root = plan.at(path.root);
  if (!IsReduction(root.kind) && root.kind != NodeKind::kCast &&
      FormatOf(observed)->precision < Binary32().precision)
    mids.push_back(ToNearest(Binary32()));
  for (const auto& cut : EnumerateCuts(plan, path)) {
    for (const RoundSpec& mid : mids) {
      Choice choice{.in = {},
                    .acc = sums ? SumsIn(Binary32()) : AccSpec{},
                    .mid = mid,
                    .out = ToNearest(*FormatOf(observed)),
                    .cuts = cut};
      choice = Canonical(plan, path, std::move(choice));
      if (seen.insert(ModelOf(plan, path, choice).Name()).second) choices.push_back(std::move(choice));
    }
  }
  return choices;
}

AsExact FindAsExact(const Plan& plan, const ValuePath& path, DType observed) {
  constexpr int64_t kMostTerms = 2;
  AsExact found;
  if (path.reductions.empty() || path.reduction_length > kMostTerms || !IsFloating(observed)) return found;
  const Choice exact{.in = {}, .out = ToNearest(*FormatOf(observed)), .cuts = {}};
  const auto as_exact = [&](const Choice& choice) {
    return choice != exact && Canonical(plan, path, choice) == Canonical(plan, path, exact);
  };
  for (const std::string& each : AccWords()) {
    Choice choice = exact;
    choice.acc = *ParseAcc(each);
    if (as_exact(choice)) found.acc.push_back(choice.acc);
  }
  for (const std::string& each : path.has_products ? ProdWords() : std::vector<std::string>()) {
    Choice choice = exact;
    choice.prod = *ParseProd(each);
    if (as_exact(choice)) found.prod.push_back(choice.prod);
  }
  // One product and a bias, which an order that begins with the bias adds in one rounding: if that is to the output's
  // format, it equals the output rounding.
  const PlanNode& root = plan.at(path.root);
  const FloatFormat& stored = *FormatOf(observed);
  if (root.kind == NodeKind::kContract && root.args.size() == 3 && root.terms() == 1 && root.alpha() == 1) {
    for (const std::string& each : AccWords()) {
      const AccSpec acc = *ParseAcc(each);
      if ((acc.binary() || acc.block > 0) && acc.bits() == stored.precision &&
          acc.rounding == Rounding::kNearestEven && acc.subnormals == Subnormals::kGradual)
        found.acc_once.push_back(acc);
    }
  }
  return found;
}

std::vector<Choice> AsWritten(const Plan& plan, const ValuePath& path, DType observed) {
  const bool sums = !path.reductions.empty() || path.has_inner;
  return {Canonical(plan, path,
                    {.in = {},
                     .acc = sums ? SumsIn(Binary32()) : AccSpec{},
                     .out = ToNearest(*FormatOf(observed)),
                     .cuts = UniformCuts(plan, path, {})})};
}

std::vector<Choice> NaturalBank(const Plan& plan, const ValuePath& path, DType observed) {
  std::vector<Readings> scalars{{}};
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

}  // namespace ulpscope
