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

void Insert(std::vector<std::string>* words, const std::string& word) {
  if (std::find(words->begin(), words->end(), word) == words->end()) words->push_back(word);
}

/// Block units that differ in n alone: what n they leave; empty when `words` holds anything else.
std::string JoinBlocks(const std::vector<std::string>& words, const std::vector<AccSpec>& accs,
                       int64_t longest) {
  int64_t least = accs.front().block;
  const std::string rest = words.front().substr(std::min(words.front().find(','), words.front().size()));
  for (size_t i = 0; i < accs.size(); ++i) {
    if (accs[i].block == 0 || !words[i].ends_with(rest)) return "";
    least = std::min<int64_t>(least, accs[i].block);
  }
  // Sums that are shorter than a unit show no more of it than their own length.
  least = std::min(least, std::max<int64_t>(longest, 2));
  return "blockfma(n>=" + std::to_string(least) + rest;
}

/// "none, p12 or p16 to p23": of roundings to so many bits each run is told by its ends.
std::string Or(const std::vector<std::string>& words) {
  const auto bits = [&](size_t i) { return words[i].starts_with('p') ? ParseMid(words[i])->bits() : 0; };
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

}  // namespace

std::string StepInside(std::string_view cut, std::string_view value) {
  std::string name(cut.substr(std::min(cut.size(), value.size() + 1)));
  // As they are written in a formula. 1 + erf(t) is erfc(-t), in which nothing cancels.
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

/// The format, if there is one: tf32 beside float16 has as many bits, and is no dtype.
std::string OneFormat(const std::vector<std::string>& words) {
  if (words.size() == 1) return words[0];
  std::string dtype;
  for (const std::string& word : words) {
    if (word == "none" || ParseMid(word)->bits() != ParseMid(words[0])->bits()) return "";
    if (ParseDType(word)) dtype = word;
  }
  return dtype;
}

/// One rounding is half a unit in the last place at most; a library's function may be further away.
std::string Stored(DType observed, const Classification& classification) {
  constexpr double kOnce = 0.5 * (1 + 0x1p-20);
  const std::string stored = "stored " + std::string(Name(observed));
  return classification.max_ulp <= kOnce
             ? stored + ", rounded once"
             : fmt::format("{}, up to {:.2g} ulp from the exact value", stored, classification.max_ulp);
}

}  // namespace

InsideSteps DescribeInside(const std::string& value, const Classification& classification) {
  InsideSteps inside;
  const std::string prefix = value + ".";
  std::map<std::string, std::vector<std::string>> by_format;
  size_t steps = 0, rounded = 0;
  for (const auto& [cut, words] : classification.cuts) {
    if (value.empty() || !cut.starts_with(prefix)) continue;
    ++steps;
    if (words == std::vector<std::string>{"none"}) continue;
    const std::string format = OneFormat(words);
    if (format.empty()) return {};
    ++rounded;
    by_format[format].push_back("the " + StepInside(cut, value));
  }
  for (const auto& [format, names] : by_format) {
    if (inside.coarsest.empty() || ParseMid(format)->bits() < ParseMid(inside.coarsest)->bits())
      inside.coarsest = format;
    std::string who;
    for (size_t i = 0; i < names.size(); ++i)
      who += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
    inside.text += (inside.text.empty() ? "" : ", ") + who + " inside rounded to " + format;
  }
  // Steps that were computed in 16 bits are all rounded, those without a name too (see ProjectFacets).
  const bool computed = by_format.size() == 1 && rounded == steps && steps > 0 &&
                        !classification.models.empty() &&
                        std::ranges::all_of(classification.models, [&](const PrecisionModel& model) {
                          const auto acc = ParseAcc(model.acc);
                          return acc && acc->binary() && acc->format->name == inside.coarsest;
                        });
  inside.all = computed || (by_format.size() == 1 && rounded == steps && steps > 1);
  if (inside.all) inside.text = "each step inside rounded to " + inside.coarsest;
  return inside;
}

bool SumsNarrow(const Classification& judged) {
  return !judged.models.empty() && std::ranges::all_of(judged.models, [](const PrecisionModel& model) {
    const auto acc = ParseAcc(model.acc);
    return acc && !acc->wide();
  });
}

void ProjectFacets(const ValueShape& shape, Classification* classification) {
  auto& facets = classification->facets;
  for (const char* facet : {"prod", "acc", "mid", "out"}) facets[facet] = {};
  for (const auto& operand : shape.operands) classification->facets_in[operand] = {};
  for (const auto& cut : shape.cut_points) classification->cuts[cut] = {};
  // Steps that are computed in 16 bits, all of them, are each rounded to 16 bits.
  const bool steps_alone = shape.has_steps && shape.reduction_length == 0 && !shape.name.empty();
  constexpr int64_t kFewTotals = 6;
  for (const PrecisionModel& model : classification->models) {
    const auto acc = ParseAcc(model.acc);
    const bool narrow = steps_alone && acc && acc->binary() && acc->bits() <= Binary16().precision;
    if (shape.has_products) Insert(&facets["prod"], model.prod);
    if (shape.reduction_length > 0 || shape.has_steps) Insert(&facets["acc"], model.acc);
    // A total that is rounded to a format may have been summed in it, and then each term was rounded to it first.
    for (const std::string& sum : shape.sum_cuts) {
      const auto cut = model.cuts.find(sum);
      if (cut == model.cuts.end() || !acc || !acc->wide() || !ParseAcc(cut->second)) continue;
      Insert(&facets["acc"], cut->second);
      // Each eighth number of float16 is one of bfloat16: of so few totals chance makes all of them such.
      if (cut->second == "bfloat16" && shape.sums <= kFewTotals) Insert(&facets["acc"], "float16");
      for (const std::string& term : shape.term_cuts) {
        if (const auto words = classification->cuts.find(term); words != classification->cuts.end())
          Insert(&words->second, "none");
      }
    }
    Insert(&facets["mid"], model.mid);
    Insert(&facets["out"], model.out);
    for (auto& [operand, words] : classification->facets_in) {
      const auto in = model.in.find(operand);
      // A sum in a narrow format rounds each term that it adds first: no rounding of the operand beside it.
      const auto read = in == model.in.end() ? std::nullopt : ParseIn(in->second);
      const bool loaded = read && read->format != nullptr && !operand.starts_with("scalar.") &&
                          !shape.has_products && shape.reduction_length > 0 && acc && acc->binary() &&
                          !acc->wide() && acc->bits() <= read->bits() && !in->second.ends_with("+daz");
      Insert(&words, in == model.in.end() || loaded ? "as_is" : in->second);
    }
    for (auto& [cut, words] : classification->cuts) {
      const auto format = model.cuts.find(cut);
      const bool inside = narrow && cut.starts_with(shape.name + ".");
      Insert(&words, format != model.cuts.end() ? format->second
                     : inside                   ? std::string(acc->format->name)
                                                : "none");
    }
  }
}

std::string JoinAccumulators(const std::vector<std::string>& words, int64_t longest) {
  if (words.empty()) return "";
  constexpr std::string_view kFlushed = "+ftz";
  if (std::ranges::all_of(words, [&](const std::string& word) { return word.ends_with(kFlushed); })) {
    std::vector<std::string> plain;
    for (const std::string& word : words) plain.push_back(word.substr(0, word.size() - kFlushed.size()));
    return JoinAccumulators(plain, longest) + ", subnormals flushed to zero";
  }
  if (words.size() == 1) return words[0];
  std::vector<AccSpec> accs;
  for (const auto& word : words) {
    if (const auto acc = ParseAcc(word)) accs.push_back(*acc);
  }
  const auto all = [&](auto holds) {
    return accs.size() == words.size() && std::ranges::all_of(accs, holds);
  };
  if (all([](const AccSpec& acc) { return acc.block > 0; })) {
    if (const std::string units = JoinBlocks(words, accs, longest); !units.empty()) return units;
  }
  // A compensated sum is one in float32 that keeps more than float32 does.
  const bool more = std::ranges::none_of(words, [](const std::string& word) {
    return word.starts_with("float32") || word.starts_with("blockfma") || word == kJoinedWider;
  });
  const bool compensated = Contains(words, "compensated");
  // Joined wider or not: a sum in float32 is no wider one throughout.
  const bool joined = Contains(words, kJoinedWider);
  if (joined && std::ranges::all_of(
                    words, [](const std::string& word) { return word == "float32" || word == kJoinedWider; }))
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
  return "a format that these inputs do not tell";
}

std::string LabelOf(const ValueShape& shape, DType observed, const Classification& classification) {
  switch (classification.kind) {
    case ClassificationKind::kUnmodelled:
      return classification.says.empty() ? "no model of the bank gives these bits"
                                         : "unmodelled: " + Join(classification.says, "; ");
    case ClassificationKind::kExactOnly:
      // One rounding of a function is no exact value, though every model rounds it alike.
      return classification.max_ulp == 0 ? "exact: every model gives these bits"
                                         : Stored(observed, classification);
    case ClassificationKind::kNotFloating:
      return "not a floating-point value";
    case ClassificationKind::kNoReference:
      return "no reference";
    case ClassificationKind::kNotJudged:
      return classification.says.empty() ? "not judged as one" : Join(classification.says, "; ");
    default:
      break;
  }
  std::vector<std::string> parts;
  for (const auto& [operand, words] : classification.facets_in) {
    const bool step = operand.starts_with(shape.name + ".");
    const std::string who =
        step ? "the " + StepInside(operand, shape.name) + " inside" : "operand " + operand;
    const auto is_dropped = [](const std::string& word) { return word == "as_is+daz"; };
    // What has no subnormal numbers may be read either way.
    const auto says_nothing = [&](const std::string& word) { return word == "as_is" || is_dropped(word); };
    if (!words.empty() && std::ranges::all_of(words, is_dropped))
      parts.push_back("subnormals of " + who + " taken as zero");
    else if (!std::ranges::all_of(words, says_nothing))
      parts.push_back(who + (words.size() == 1 ? " rounded to " : " one of ") + Or(words));
  }
  const auto& prod = classification.facets.at("prod");
  if (!prod.empty() && prod != std::vector<std::string>{"exact"}) parts.push_back("products " + Or(prod));
  const auto& acc = classification.facets.at("acc");
  const InsideSteps inside = DescribeInside(shape.name, classification);
  // Where all are rounded, what they were computed in shows in none.
  const std::string in = JoinAccumulators(acc, shape.reduction_length);
  const bool open = acc.size() > 1 && in == JoinAccumulators({"bfloat16", "float64"});
  if (!acc.empty() && in != "exact" &&
      !(shape.reduction_length == 0 && (inside.all || (open && !inside.text.empty()))))
    parts.push_back((shape.reduction_length > 0 ? "accumulated in " : "each step in ") + in);
  if (!inside.text.empty()) parts.push_back(inside.text);
  // The coarsest of all roundings before the store, unless it is one of those inside.
  std::vector<std::string> own;
  for (const PrecisionModel& model : classification.models) {
    const auto before = model.cuts.find(shape.name);
    Insert(&own, before == model.cuts.end() ? "none" : before->second);
  }
  const bool told = !inside.text.empty() && classification.facets.at("mid") == std::vector{inside.coarsest};
  std::vector<std::string> mid = told ? own : classification.facets.at("mid");
  // Beside a step that is rounded, what is left open says nothing.
  if (!inside.text.empty() && mid.size() > 1) mid = {"none"};
  // float32 beside nothing is what a wide sum is anyway, where a narrower store hides it.
  const bool wide =
      std::ranges::all_of(mid, [](const std::string& word) { return word == "none" || word == "float32"; });
  // Values of the program that are rounded so, where the result itself is not.
  std::vector<std::string> on_the_way;
  const bool computed_on =
      own == std::vector<std::string>{"none"} || own == std::vector<std::string>{"float32"};
  for (const auto& [cut, words] : classification.cuts) {
    if (!wide && computed_on && mid.size() == 1 && words == mid && cut.find('.') == cut.npos)
      on_the_way.push_back(cut);
  }
  if (!on_the_way.empty())
    parts.push_back(fmt::format("{} rounded to {} on the way", Join(on_the_way, " and "), mid[0]));
  else if (!wide || mid == std::vector<std::string>{"float32"})
    parts.push_back((mid.size() == 1 ? "rounded through " : "rounded through one of ") + Or(mid));
  const auto& out = classification.facets.at("out");
  const bool nearest = std::ranges::any_of(
      out, [](const std::string& word) { return word.find("_rne") != std::string::npos; });
  const std::string store = "stored " + std::string(Name(observed)) + (nearest ? "" : " (" + Or(out) + ")");
  if (parts.empty() && shape.operands.empty() && nearest) return Stored(observed, classification);
  parts.push_back(store);
  if (classification.beyond > 0)
    parts.push_back(
        fmt::format("with errors {:.1f} times those of {}", classification.beyond,
                    shape.reduction_length > 0 ? "float32 in any order tried" : "its steps in float32"));
  return (classification.rests_on_likelihood ? "likely " : "") + Join(parts, ", ");
}

}  // namespace ulpscope
