// Facet projections and the lattice's join, in words.
#include "harness/judge/label.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

template <class Spec>
void Insert(std::vector<Spec>* specs, const Spec& spec) {
  if (!Contains(*specs, spec)) specs->push_back(spec);
}

/// Block units that differ in n alone: the remaining choices of n; empty if `accs` holds anything else.
std::string JoinBlocks(const std::vector<AccSpec>& accs, int64_t longest) {
  AccSpec least = accs.front();
  for (const AccSpec& acc : accs) {
    AccSpec alike = acc;
    alike.block = least.block;
    if (acc.block == 0 || alike != least) return "";
    least.block = std::min(least.block, acc.block);
  }
  // A sum shorter than a unit shows only its own length.
  least.block = static_cast<int>(std::min<int64_t>(least.block, std::max<int64_t>(longest, 2)));
  constexpr std::string_view kUnit = "blockfma(";
  return std::string(kUnit) + "n>=" + AccWord(least).substr(kUnit.size());
}

/// "none, p12 or p16 to p23": each run of roundings to consecutive numbers of bits is given by its ends.
std::string Or(const std::vector<RoundSpec>& specs, std::string (*word)(const RoundSpec&)) {
  const std::vector<std::string> words = WordsOf(specs, word);
  const auto bits = [&](size_t i) {
    return specs[i].to_bits() && words[i] == specs[i].format->name ? specs[i].bits() : 0;
  };
  std::vector<std::string> parts;
  for (size_t i = 0; i < words.size(); ++i) {
    size_t last = i;
    while (bits(last) > 0 && last + 1 < words.size() && bits(last + 1) == bits(last) + 1) ++last;
    if (last < i + 2) last = i;
    parts.push_back(last == i ? words[i] : words[i] + " to " + words[last]);
    i = last;
  }
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " or " : ", ") + parts[i];
  return text;
}

/// True for formats of sums: tf32 and float8 are formats of operands alone.
bool IsFormatOfSums(const FloatFormat& format) {
  return IsOfBits(format) || &format == &Binary64() || &format == &Binary32() || &format == &Binary16() ||
         &format == &Bfloat16();
}

}  // namespace

std::string StepInside(std::string_view cut, std::string_view value) {
  std::string name(cut.substr(std::min(cut.size(), value.size() + 1)));
  // The spelling in a formula. 1 + erf(t) is erfc(-t), which has no cancellation.
  for (const auto& [step, written] : {std::pair{"one_plus_tanh", "1 + tanh"},
                                      {"erfc", "1 + erf"},
                                      {"minus", "-x"},
                                      {"sqrt_half", "1/sqrt(2)"},
                                      {"exp_in_denominator", "exp in the denominator"}}) {
    if (name == step) return written;
  }
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

namespace {

/// The format, if there is one: tf32 next to float16 has as many bits, and is no dtype.
const FloatFormat* OneFormat(const std::vector<RoundSpec>& roundings) {
  if (roundings.size() == 1) return roundings[0].format;
  const FloatFormat* of_dtype = nullptr;
  for (const RoundSpec& rounding : roundings) {
    if (rounding.none() || rounding.bits() != roundings[0].bits()) return nullptr;
    if (ParseDType(rounding.format->name)) of_dtype = rounding.format;
  }
  return of_dtype;
}

/// A single rounding errs by at most half an ulp; a library's function may be further off.
bool IsRoundedOnce(ErrorsOf errors, const Classification& classification) {
  constexpr double kOnce =
      0.5 * (1 + 0x1p-20);  // derived: half a unit; the oracle's error is less than 2^-20
  return errors == ErrorsOf::kSeveralSteps || classification.max_ulp <= kOnce;
}

std::string Stored(DType observed, ErrorsOf errors, const Classification& classification) {
  const std::string stored = "stored " + std::string(Name(observed));
  if (IsRoundedOnce(errors, classification)) return stored + ", rounded once";
  return fmt::format("{}, up to {:.2g} ulp from the exact {}", stored, classification.max_ulp,
                     errors == ErrorsOf::kStepOfProgram ? "result of its operands" : "value");
}

}  // namespace

InsideSteps DescribeInside(const std::string& value, const Classification& classification) {
  InsideSteps inside;
  const std::string prefix = value + ".";
  struct Rounded {
    const FloatFormat* format = nullptr;
    std::vector<std::string> names;
  };
  std::map<std::string_view, Rounded> by_format;
  size_t steps = 0, rounded = 0;
  for (const auto& [cut, roundings] : classification.cuts) {
    if (value.empty() || !cut.starts_with(prefix)) continue;
    ++steps;
    if (IsUnrounded(roundings)) continue;
    const FloatFormat* format = OneFormat(roundings);
    if (format == nullptr) return {};
    ++rounded;
    Rounded& all = by_format[format->name];
    all.format = format;
    all.names.push_back("the " + StepInside(cut, value));
  }
  for (const auto& [name, each] : by_format) {
    if (inside.coarsest == nullptr || each.format->precision < inside.coarsest->precision)
      inside.coarsest = each.format;
    std::string who;
    for (size_t i = 0; i < each.names.size(); ++i)
      who += (i == 0 ? "" : i + 1 == each.names.size() ? " and " : ", ") + each.names[i];
    inside.text += (inside.text.empty() ? "" : ", ") + who + " inside rounded to " + std::string(name);
  }
  // Steps that were computed in 16 bits are all rounded, those without a name too (see ProjectFacets).
  const bool computed = by_format.size() == 1 && rounded == steps && steps > 0 &&
                        !classification.models.empty() &&
                        std::ranges::all_of(classification.models, [&](const PrecisionModel& model) {
                          return model.acc.binary() && model.acc.format == inside.coarsest;
                        });
  inside.all = computed || (by_format.size() == 1 && rounded == steps && steps > 1);
  if (inside.all) inside.text = "each step inside rounded to " + std::string(inside.coarsest->name);
  return inside;
}

bool SumsNarrow(const Classification& judged) {
  return !judged.models.empty() &&
         std::ranges::all_of(judged.models, [](const PrecisionModel& model) { return !model.acc.wide(); });
}

void ProjectFacets(const ValueShape& shape, Classification* classification) {
  auto& facets = classification->facets;
  facets = {};
  for (const auto& operand : shape.operands) classification->facets_in[operand] = {};
  for (const auto& cut : shape.cut_points) classification->cuts[cut] = {};
  // Steps that are all computed in 16 bits are each rounded to 16 bits.
  const bool steps_alone = shape.has_steps && shape.reduction_length == 0 && !shape.name.empty();
  constexpr int64_t kFewTotals = 6;  // derived: 8^-7 is once in two millions (below)
  for (const PrecisionModel& model : classification->models) {
    const AccSpec& acc = model.acc;
    const bool narrow = steps_alone && acc.binary() && acc.bits() <= Binary16().precision;
    if (shape.has_products) Insert(&facets.prod, model.prod);
    if (shape.reduction_length > 0 || shape.has_steps) Insert(&facets.acc, acc);
    // A total that is rounded to a format may have been summed in it, with each term rounded to it first.
    for (const std::string& sum : shape.sum_cuts) {
      const RoundSpec* cut = Lookup(model.cuts, sum);
      // tf32 and float8 are no formats of sums.
      if (cut == nullptr || cut->none() || !acc.wide() || !IsFormatOfSums(*cut->format)) continue;
      Insert(&facets.acc, SumsIn(*cut->format));
      // Every eighth number of float16 is one of bfloat16, so chance can make so few totals all such numbers.
      if (cut->rounds_to(Bfloat16()) && shape.sums <= kFewTotals) Insert(&facets.acc, SumsIn(Binary16()));
      for (const std::string& term : shape.term_cuts) {
        if (auto* roundings = Lookup(classification->cuts, term)) Insert(roundings, RoundSpec{});
      }
    }
    Insert(&facets.mid, model.mid);
    Insert(&facets.out, model.out);
    for (auto& [operand, roundings] : classification->facets_in) {
      const RoundSpec read = LookupOr(model.in, operand);
      // A sum in a narrow format first rounds each term that it adds; that is no rounding of the operand.
      const bool loaded = read.format != nullptr && !operand.starts_with("scalar.") && !shape.has_products &&
                          shape.reduction_length > 0 && acc.binary() && !acc.wide() &&
                          acc.bits() <= read.bits() && !read.drops_operands();
      Insert(&roundings, loaded ? RoundSpec{} : read);
    }
    for (auto& [cut, roundings] : classification->cuts) {
      const RoundSpec* rounding = Lookup(model.cuts, cut);
      const bool inside = narrow && cut.starts_with(shape.name + ".");
      Insert(&roundings, rounding != nullptr ? *rounding : inside ? ToNearest(*acc.format) : RoundSpec{});
    }
  }
}

std::string_view OpenFormat() { return "a format that these inputs do not determine"; }

std::string JoinAccumulators(const std::vector<AccSpec>& accs, int64_t longest) {
  if (accs.empty()) return "";
  const auto all = [&](auto holds) { return std::ranges::all_of(accs, holds); };
  if (all([](const AccSpec& acc) { return acc.flushes(); })) {
    std::vector<AccSpec> plain = accs;
    for (AccSpec& acc : plain) acc.subnormals = Subnormals::kGradual;
    return JoinAccumulators(plain, longest) + ", subnormals flushed to zero";
  }
  if (accs.size() == 1) return AccWord(accs[0]);
  if (all([](const AccSpec& acc) { return acc.block > 0; })) {
    if (const std::string units = JoinBlocks(accs, longest); !units.empty()) return units;
  }
  // A compensated sum is a float32 sum that keeps more than float32 does.
  const bool more = std::ranges::none_of(accs, [](const AccSpec& acc) {
    return (acc.binary() && acc.format == &Binary32()) || acc.block > 0 || acc == JoinedWider();
  });
  const bool compensated =
      std::ranges::any_of(accs, [](const AccSpec& acc) { return acc.in_two_words() && !acc.flushes(); });
  // Joined wider or not: a sum in float32 is not a wider one throughout.
  const auto float32_or_joined = [](const AccSpec& acc) {
    return acc == SumsIn(Binary32()) || acc == JoinedWider();
  };
  if (Contains(accs, JoinedWider()) && all(float32_or_joined))
    return "float32 (partial sums may be added in float64)";
  if (all([](const AccSpec& acc) { return acc.wide(); }))
    return !more         ? "float32 or wider"
           : compensated ? "a format wider than float32, or compensated"
                         : "a format wider than float32";
  for (const FloatFormat* format : {&Bfloat16(), &Binary16()}) {
    if (all([&](const AccSpec& acc) { return acc.partial == nullptr && acc.format == format; }))
      return std::string(format->name);
  }
  if (all([](const AccSpec& acc) { return acc.bits() <= Binary16().precision; })) return "16 bits";
  return std::string(OpenFormat());
}

namespace {

using LabelParts = std::vector<std::string>;

/// The label of a value that no set of models explains; empty for any other.
std::string LabelWithoutModels(DType observed, ErrorsOf errors, const Classification& classification) {
  switch (classification.kind) {
    case ClassificationKind::kUnmodelled:
      return classification.says.empty() ? "no candidate model gives these bits"
                                         : "unmodelled: " + JoinTexts(classification.says);
    case ClassificationKind::kExactOnly:
      // A correctly rounded function is no exact value, although every model rounds it alike.
      return classification.max_ulp == 0 ? "exact: every model gives these bits"
                                         : Stored(observed, errors, classification);
    case ClassificationKind::kNotFloating:
      return "not a floating-point value";
    case ClassificationKind::kNoReference:
      return "no reference";
    case ClassificationKind::kNotJudged:
      return classification.says.empty() ? "not judged as one" : JoinTexts(classification.says);
    default:
      return "";
  }
}

void AddOperands(const ValueShape& shape, const Classification& classification, LabelParts* parts) {
  for (const auto& [operand, reads] : classification.facets_in) {
    const bool step = operand.starts_with(shape.name + ".");
    const std::string who =
        step ? "the " + StepInside(operand, shape.name) + " inside" : "operand " + operand;
    // Operands without subnormal numbers fit either reading.
    const auto keeps_numbers = [](const RoundSpec& read) {
      return read.none() || DropsSubnormalsAlone(read);
    };
    if (!reads.empty() && std::ranges::all_of(reads, DropsSubnormalsAlone))
      parts->push_back("subnormals of " + who + " taken as zero");
    else if (!std::ranges::all_of(reads, keeps_numbers))
      parts->push_back(who + (reads.size() == 1 ? " rounded to " : " one of ") + Or(reads, InWord));
  }
  const auto& prod = classification.facets.prod;
  if (!prod.empty() && !IsUnrounded(prod)) parts->push_back("products " + Or(prod, ProdWord));
}

/// The format of the sums, or of an op's steps.
FormatOfWhat AddAccumulator(const ValueShape& shape, const InsideSteps& inside,
                            const Classification& classification, LabelParts* parts) {
  const auto& acc = classification.facets.acc;
  const bool sums = shape.reduction_length > 0;
  // If all steps are rounded, none shows the format in which it was computed.
  const std::string in = JoinAccumulators(acc, shape.reduction_length);
  const bool open = in == OpenFormat();
  if (acc.empty() || (acc.size() == 1 && acc[0].exact()) ||
      (!sums && (inside.all || (open && !inside.text.empty()))))
    return FormatOfWhat::kNothing;
  parts->push_back((sums ? "accumulated in " : "each step in ") + in);
  return sums ? FormatOfWhat::kSums : FormatOfWhat::kSteps;
}

/// Adds the rounding between the sums and the output rounding.
void AddMiddle(const ValueShape& shape, const InsideSteps& inside, const Classification& classification,
               LabelParts* parts) {
  // The value's own rounding before the output rounding; `all` holds the coarsest of all of them.
  std::vector<RoundSpec> own;
  for (const PrecisionModel& model : classification.models) {
    Insert(&own, LookupOr(model.cuts, shape.name));
  }
  const std::vector<RoundSpec>& all = classification.facets.mid;
  const bool told = inside.coarsest != nullptr && all == std::vector{ToNearest(*inside.coarsest)};
  std::vector<RoundSpec> mid = told ? own : all;
  // Next to a step that is rounded, an open choice is no information.
  if (!inside.text.empty() && mid.size() > 1) mid = {RoundSpec{}};
  // With a narrower output, "float32 or none" describes any wide sum.
  const RoundSpec float32 = ToNearest(Binary32());
  const bool wide = std::ranges::all_of(
      mid, [&](const RoundSpec& rounding) { return rounding.none() || rounding == float32; });
  // Program values that are rounded so, while the result itself is not.
  std::vector<std::string> on_the_way;
  const bool computed_on = IsUnrounded(own) || own == std::vector{float32};
  for (const auto& [cut, roundings] : classification.cuts) {
    if (!wide && computed_on && mid.size() == 1 && roundings == mid && cut.find('.') == cut.npos)
      on_the_way.push_back(cut);
  }
  if (!on_the_way.empty())
    parts->push_back(
        fmt::format("intermediate {} rounded to {}", Join(on_the_way, " and "), MidWord(mid[0])));
  else if (!wide || mid == std::vector{float32})
    parts->push_back((mid.size() == 1 ? "rounded through " : "rounded through one of ") + Or(mid, MidWord));
}

}  // namespace

void SetLabel(const ValueShape& shape, DType observed, ErrorsOf errors, Classification* classification) {
  classification->labelled = FormatOfWhat::kNothing;
  classification->label = LabelWithoutModels(observed, errors, *classification);
  classification->states_error = classification->kind == ClassificationKind::kExactOnly &&
                                 classification->max_ulp != 0 && !IsRoundedOnce(errors, *classification);
  if (!classification->label.empty()) return;
  LabelParts parts;
  AddOperands(shape, *classification, &parts);
  const InsideSteps inside = DescribeInside(shape.name, *classification);
  classification->labelled = AddAccumulator(shape, inside, *classification, &parts);
  if (!inside.text.empty()) parts.push_back(inside.text);
  AddMiddle(shape, inside, *classification, &parts);
  const auto& out = classification->facets.out;
  const bool nearest = std::ranges::any_of(out, [](const RoundSpec& store) {
    return store.format != nullptr && store.rounding == Rounding::kNearestEven && !store.faithful;
  });
  const std::string store =
      "stored " + std::string(Name(observed)) + (nearest ? "" : " (" + Or(out, OutWord) + ")");
  if (parts.empty() && shape.operands.empty() && nearest) {
    classification->label = Stored(observed, errors, *classification);
    classification->states_error = !IsRoundedOnce(errors, *classification);
    return;
  }
  classification->states_error = classification->beyond > 0;
  parts.push_back(store);
  if (classification->beyond > 0)
    parts.push_back(
        fmt::format("with errors {:.1f} times those of {} ({})", classification->beyond,
                    shape.reduction_length > 0 ? "float32 in any order tried" : "its steps in float32",
                    classification->beyond_of));
  classification->label = (classification->rests_on_likelihood ? "likely " : "") + Join(parts, ", ");
}

}  // namespace ulpscope
