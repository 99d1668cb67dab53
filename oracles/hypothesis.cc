// Enumerates precision models: operands, products, accumulators and stores that kernels combine.
#include "oracles/hypothesis.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "oracles/cuts.h"

namespace ulpscope {
namespace {

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

/// Kernels split sums of hundreds of terms or more: below this length split-K is no model of a sum. Tried there, it
/// would join every set that holds a rounding of the result.
constexpr int64_t kLeastSplit = 128;

/// Partial sums of products are seen by their store; those of single values only where the values are wider, and no step
/// comes after the sum.
bool ShowsPartials(const Plan& plan, const ValuePath& path, const AccSpec& acc) {
  if (path.has_products) return true;
  if (plan.at(path.root).kind != NodeKind::kReduce) return false;
  return std::ranges::any_of(path.operands, [&](const auto& operand) {
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
  add(plan.at(path.root).dtype);
  add(observed);
  // A sum that one block holds is rounded once, into the format of the result: that is its store, and no narrow sum.
  const PlanNode& root = plan.at(path.root);
  const bool alone =
      IsReduction(root.kind) && root.args.size() <= 2 && root.alpha() == 1 && path.reductions.size() == 1;
  const auto is_store = [&](const AccSpec& acc) {
    return alone && acc.block > 0 && acc.format->precision < Binary32().precision &&
           *acc.format == *FormatOf(observed) && path.reduction_length > 1 &&
           path.reduction_length <= acc.block;
  };
  std::vector<std::string> words;
  for (const auto& word : AccWords()) {
    const AccSpec acc = *ParseAcc(word);
    if (is_store(acc)) continue;
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
  const NodeKind root = plan.at(path.root).kind;
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
              if (plan.at(path.root).kind == NodeKind::kCast)
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
  const PlanNode& root = plan.at(path.root);
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

std::map<std::string, std::vector<std::string>> WordsAsExact(const Plan& plan, const ValuePath& path,
                                                             DType observed) {
  constexpr int64_t kMostTerms = 2;
  std::map<std::string, std::vector<std::string>> words;
  if (path.reductions.empty() || path.reduction_length > kMostTerms || !IsFloating(observed)) return words;
  const Choice exact{.in = {}, .out = std::string(Name(observed)) + "_rne", .cuts = {}};
  const auto add = [&](const char* facet, const std::vector<std::string>& all, std::string Choice::*word) {
    for (const std::string& each : all) {
      Choice choice = exact;
      choice.*word = each;
      if (each != "exact" && Canonical(plan, path, choice) == Canonical(plan, path, exact))
        words[facet].push_back(each);
    }
  };
  add("acc", AccWords(), &Choice::acc);
  if (path.has_products) add("prod", ProdWords(), &Choice::prod);
  // One product and a bias, which an order that begins with the bias adds in one rounding: where that is to the format of the store, it
  // does what the store does.
  const PlanNode& root = plan.at(path.root);
  const FloatFormat& stored = *FormatOf(observed);
  if (root.kind == NodeKind::kContract && root.args.size() == 3 && root.terms() == 1 && root.alpha() == 1) {
    for (const std::string& each : AccWords()) {
      const AccSpec acc = *ParseAcc(each);
      if ((acc.binary() || acc.block > 0) && acc.bits() == stored.precision &&
          acc.rounding == Rounding::kNearestEven && acc.subnormals == Subnormals::kGradual)
        words[std::string(kAccOnce)].push_back(each);
    }
  }
  return words;
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

namespace {

/// The steps inside the op that are cut points, by their names.
std::map<std::string, std::vector<int>> NamedStepsOf(const Plan& plan, const ValuePath& path) {
  std::map<std::string, std::vector<int>> groups;
  for (const int cut : path.cut_points) {
    if (IsStep(plan.at(cut))) groups[plan.at(cut).name].push_back(cut);
  }
  return groups;
}

/// Sums in float32, and no step rounded but to its dtype.
Choice StepsAsDeclared(const Plan& plan, const ValuePath& path, DType observed) {
  return {.in = {},
          .prod = "exact",
          .acc = "float32",
          .mid = "none",
          .out = std::string(Name(observed)) + "_rne",
          .cuts = UniformCuts(plan, path, "none"),
          .mode = "_rne"};
}

}  // namespace

std::vector<Choice> EnumerateSteps(const Plan& plan, const ValuePath& path, DType observed, size_t most) {
  constexpr size_t kMostSteps = 16;  // what their sets are numbered with
  const auto groups = NamedStepsOf(plan, path);
  if (groups.size() > kMostSteps) return {};
  const size_t all = (size_t{1} << groups.size()) - 1;
  std::vector<size_t> sets;
  for (size_t set = 1; set <= all; ++set) sets.push_back(set);
  // All steps, single ones, all but single ones, pairs and so on: what one decision in a kernel does.
  const auto rank = [&](size_t set) {
    const auto chosen = static_cast<size_t>(std::popcount(set));
    return std::min(2 * chosen, 2 * (groups.size() - chosen) + 1);
  };
  std::ranges::stable_sort(sets, [&](size_t a, size_t b) { return rank(a) < rank(b); });
  if (sets.size() > most) sets.resize(most);
  const Choice declared = StepsAsDeclared(plan, path, observed);
  const std::string narrow = NarrowOf(plan, path);
  std::vector<Choice> choices;
  std::set<std::string> seen;
  for (const size_t set : sets) {
    // Of a wide result the steps are tried in bfloat16 alone; a total has the bits of what it was summed in, which may be float16.
    const bool wide = FormatOf(observed)->precision > Binary16().precision;
    for (const std::string& total : {narrow, std::string(wide ? "float16" : narrow)}) {
      Choice one = declared;
      size_t bit = 1;
      for (const auto& [name, nodes] : groups) {
        for (const int node : nodes) {
          if ((set & bit) != 0) one.cuts[node] = {IsReduction(plan.at(node).kind) ? total : narrow};
        }
        bit <<= 1;
      }
      one = Canonical(plan, path, std::move(one));
      if (seen.insert(ModelOf(plan, path, one).Name()).second) choices.push_back(std::move(one));
    }
  }
  return choices;
}

std::vector<Choice> EnumerateKept(const Plan& plan, const ValuePath& path, DType observed,
                                  const std::string& format) {
  const Choice declared = StepsAsDeclared(plan, path, observed);
  std::vector<Choice> choices;
  for (const auto& [name, nodes] : NamedStepsOf(plan, path)) {
    Choice choice = declared;
    for (const int node : nodes) choice.cuts[node] = {format};
    choices.push_back(Canonical(plan, path, std::move(choice)));
  }
  return choices;
}

std::vector<Choice> EnumerateFlushing(const Plan& plan, const ValuePath& path, DType observed) {
  std::vector<Choice> choices;
  if (!path.has_products) return choices;
  // Hardware's mode takes all operands; whether it took one that has no subnormals no result tells.
  std::map<std::string, std::string> all;
  std::vector<std::map<std::string, std::string>> dropped;
  for (const auto& [operand, dtype] : path.operands) {
    if (FormatOf(dtype) == nullptr) continue;
    all[operand] = "as_is+daz";
    dropped.push_back({{operand, "as_is+daz"}});
  }
  if (dropped.size() != 1) dropped.insert(dropped.begin(), all);
  for (const Choice& plain : EnumerateChoices(plan, path, observed)) {
    const AccSpec acc = *ParseAcc(plain.acc);
    if (!plain.in.empty() || !acc.binary() || acc.format->precision < 24) continue;
    Choice sums = plain;
    sums.acc += "+ftz";
    for (const auto& in : dropped) {
      Choice operands = plain, both = sums;
      operands.in = both.in = in;
      choices.push_back(std::move(both));
      choices.push_back(std::move(operands));
    }
    choices.push_back(std::move(sums));
  }
  return choices;
}

}  // namespace ulpscope
