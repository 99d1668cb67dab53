// Cells of the matrix.
#include "reports/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "harness/base/pattern.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

/// One rounding on the way: its text and how many significant bits it keeps. Everything of float32's class
/// has 24.
struct Segment {
  std::string text;
  int bits = 0;
};
using Chain = std::vector<Segment>;

constexpr int kFloat32Bits = 24;
/// The segment of a word of a model; one that is not known comes back as it is.
template <auto Parse>
Segment Spell(std::string_view word) {
  const auto spec = Parse(word);
  return spec ? Segment{.text = Brief(*spec), .bits = spec->bits()} : Segment{.text = std::string(word)};
}

bool Applies(const Classification& classification, const std::string& facet) {
  const auto words = classification.facets.find(facet);
  return words != classification.facets.end() && !words->second.empty();
}

Segment Narrowest(const std::vector<Segment>& segments) {
  return *std::ranges::min_element(segments,
                                   [](const Segment& a, const Segment& b) { return a.bits < b.bits; });
}

template <auto Parse>
std::vector<Segment> SpellRounded(const std::map<std::string, std::string>& words, std::string_view nothing) {
  std::vector<Segment> rounded;
  for (const auto& [name, word] : words) {
    if (word != nothing) rounded.push_back(Spell<Parse>(word));
  }
  return rounded;
}

/// How much of a model is told: kWide takes every accumulator of float32's class or wider for one, kWidest
/// those that drop subnormals too; kLeftOut leaves out intermediates that were rounded before the sums.
struct Reading {
  enum class Accumulator { kNamed, kWide, kWidest } accumulator = Accumulator::kNamed;
  enum class Cuts { kTold, kLeftOut } cuts = Cuts::kTold;
};

/// What was rounded before the sums: operands, and intermediates that feed them.
void AppendInputs(const PrecisionModel& model, const Classification& classification, const Reading& reading,
                  Chain* chain) {
  std::vector<Segment> before = SpellRounded<ParseIn>(model.in, "as_is");
  // Where there are no sums, a cut is a rounding on the way; after the sums it is `mid`.
  if (Applies(classification, "acc") && model.mid == "none" && reading.cuts == Reading::Cuts::kTold) {
    const auto cuts = SpellRounded<ParseMid>(model.cuts, "none");
    before.insert(before.end(), cuts.begin(), cuts.end());
  }
  if (!before.empty()) {
    const Segment narrowest = Narrowest(before);
    chain->push_back({.text = "(" + narrowest.text + ")", .bits = narrowest.bits});
  }
  if (Applies(classification, "prod") && model.prod != "exact") {
    const Segment prod = Spell<ParseProd>(model.prod);
    // Elementary steps in the format of the sums are one thing to the reader.
    if (prod.text != Spell<ParseAcc>(model.acc).text)
      chain->push_back({.text = "*" + prod.text, .bits = prod.bits});
  }
}

/// The rounding between the sums and the store, if there is one; without sums the narrowest on the way.
std::optional<Segment> Between(const PrecisionModel& model, const Classification& classification) {
  std::vector<Segment> rounded;
  if (model.mid != "none") rounded.push_back(Spell<ParseMid>(model.mid));
  if (!Applies(classification, "acc")) {
    const auto cuts = SpellRounded<ParseMid>(model.cuts, "none");
    rounded.insert(rounded.end(), cuts.begin(), cuts.end());
  }
  return rounded.empty() ? std::nullopt : std::optional(Narrowest(rounded));
}

/// One name for all of float32's class, whatever the direction of rounding.
Segment Widen(Segment segment) {
  if (segment.bits >= kFloat32Bits)
    segment.text = segment.bits >= 53 && segment.bits < kAllBits ? "f64" : "f32";
  return segment;
}

/// The chain of one model.
Chain MakeChain(const PrecisionModel& model, const Classification& classification, const Reading& reading) {
  Chain chain;
  AppendInputs(model, classification, reading, &chain);
  const bool wide = reading.accumulator != Reading::Accumulator::kNamed;
  const bool flushed = model.acc.ends_with("+ftz") && reading.accumulator != Reading::Accumulator::kWidest;
  const Segment out = wide ? Widen(Spell<ParseOut>(model.out)) : Spell<ParseOut>(model.out);
  std::optional<Segment> between = Between(model, classification);
  if (wide && between && between->bits >= kFloat32Bits) between.reset();  // one more of the wide formats
  if (Applies(classification, "acc")) {
    Segment acc = Spell<ParseAcc>(model.acc);
    if (wide && acc.bits >= kFloat32Bits) acc.text = flushed ? "f32ftz" : "f32";
    // Sums in the format of the store, or float32 or wider into float32: one thing to the reader.
    const bool hidden = !between && !flushed &&
                        (acc.text == out.text || (wide && acc.bits >= kFloat32Bits && out.text == "f32"));
    if (!hidden) chain.push_back(acc);
  }
  if (between) chain.push_back(*between);
  chain.push_back(out);
  return chain;
}

std::string Text(const Chain& chain) {
  std::string text;
  for (const Segment& segment : chain) text += (text.empty() ? "" : ">") + segment.text;
  return text;
}

/// The one chain that all models share, or "" when they differ.
std::string Shared(const Classification& classification, const Reading& reading) {
  std::set<std::string> texts;
  for (const auto& model : classification.models)
    texts.insert(Text(MakeChain(model, classification, reading)));
  return texts.size() == 1 ? *texts.begin() : "";
}

std::string Plain(std::string text) {
  text.erase(
      std::remove_if(text.begin(), text.end(), [](char c) { return c == '(' || c == ')' || c == '*'; }),
      text.end());
  return text;
}

/// "f32..bf16": the narrowest format on the way in the model that rounds least, and in the one that rounds most.
std::string SpanText(const Classification& classification, const Segment& worst) {
  std::optional<Segment> least;
  for (const auto& model : classification.models) {
    const Segment narrowest =
        Narrowest(MakeChain(model, classification, {Reading::Accumulator::kWide, Reading::Cuts::kLeftOut}));
    if (!least || narrowest.bits > least->bits) least = narrowest;
  }
  return least && least->bits > worst.bits ? Plain(least->text) + ".." + Plain(worst.text)
                                           : Plain(worst.text);
}

/// "f16|tf32": operands of as few bits as `worst` in one model or another; ways of rounding are left out.
std::string AsNarrow(std::span<const Segment> all, const Segment& worst) {
  std::vector<std::string> names;
  for (const Segment& segment : all) {
    if (segment.bits == worst.bits && segment.text.starts_with('(')) names.push_back(Plain(segment.text));
  }
  std::ranges::sort(names);
  std::string text, last;
  for (const std::string& name : names) {
    if (!last.empty() && name.starts_with(last)) continue;
    text += (text.empty() ? "" : "|") + name;
    last = name;
  }
  return text;
}

/// What all models share; else the span of the narrowest formats on the way.
std::string RoundingText(const Classification& classification) {
  using enum Reading::Accumulator;
  using enum Reading::Cuts;
  for (const Reading& reading : {Reading{kNamed, kTold}, Reading{kWide, kTold}, Reading{kWidest, kTold},
                                 Reading{kNamed, kLeftOut}, Reading{kWide, kLeftOut}}) {
    if (std::string same = Shared(classification, reading); !same.empty()) return same;
  }
  std::vector<Segment> all;
  std::set<std::string> outs;
  for (const auto& model : classification.models) {
    const Chain chain = MakeChain(model, classification, {kNamed, kLeftOut});
    all.insert(all.end(), chain.begin(), chain.end());
    outs.insert(chain.back().text);
  }
  const Segment worst = Narrowest(all);
  const std::string span = SpanText(classification, worst);
  const std::string out = outs.size() == 1 ? *outs.begin() : "";
  // float32 or wider all the way into float32: float32, as for an accumulator alone.
  const int out_bits = Spell<ParseOut>(classification.models.front().out).bits;
  if (!out.empty() && out_bits >= kFloat32Bits && worst.bits >= out_bits) return out;
  // Operands stay in parentheses, whatever they are rounded to.
  const bool operands = std::ranges::all_of(classification.models, [](const PrecisionModel& model) {
    return std::ranges::any_of(model.in, [](const auto& in) { return in.second != "as_is"; });
  });
  if (operands && worst.text.starts_with('('))
    return fmt::format("({}?)>{}", span == Plain(worst.text) ? AsNarrow(all, worst) : span,
                       out.empty() ? "?" : out);
  const bool one = out.empty() || out == span || span.ends_with(".." + out);
  return one ? span + "?" : span + "?>" + out;
}

/// Stores that cut, or round ties away, where one to nearest even explains as much: a cell shows what is usual.
Classification WithoutOddStores(Classification classification) {
  const auto usual = [](const PrecisionModel& model) { return model.out.ends_with("_rne"); };
  auto& models = classification.models;
  if (std::ranges::any_of(models, usual))
    std::erase_if(models, [&](const PrecisionModel& model) { return !usual(model); });
  return classification;
}

/// That subnormals are dropped somewhere is told even where the models differ about the place.
std::string ClassText(const Classification& classification) {
  const auto drops = [](const PrecisionModel& model) {
    return model.acc.ends_with("+ftz") ||
           std::ranges::any_of(model.in, [](const auto& in) { return in.second.ends_with("+daz"); });
  };
  std::string text = RoundingText(WithoutOddStores(classification));
  const bool told = text.find("daz") != std::string::npos || text.find("ftz") != std::string::npos;
  return !told && std::ranges::all_of(classification.models, drops) ? "(ftz)>" + text : text;
}

/// A mark that few matrices show: how it looks in a cell, and what it means.
struct RareMark {
  std::string_view pattern, entry;
};

std::span<const RareMark> RareMarks() {
  static constexpr RareMark kMarks[] = {
      {"(^|[>(])[^>(?.]+[?]", "a? a at the narrowest, how often cannot be told"},
      {"[|]", "a|b one of these, which are as narrow"},
      {"rz", "rz rounded toward zero"},
      {"rna", "rna ties away from zero"},
      {"odd", "odd rounded to odd"},
      {"daz", "daz subnormal operands taken as zero"},
      {"ftz", "ftz subnormal results taken as zero"},
      {"bfma[0-9]", "bfmaN blocks of products added at once, N bits kept"},
      {"split[(]", "split(a) partial sums in a"},
      {"comp", "comp compensated sums"},
      {"x[0-9]", "axN operands as parts in a, N products of them"},
      {"(^|[>(*.])p[0-9]", "pN a format of N significant bits"},
      {"exact", "exact nothing rounded before the store"},
      {"unmodelled", "unmodelled no model of the bank gives these bits"},
      {"shape!", "shape! not the shape that the program gives"},
      {"value!", "value! whole numbers or truth values that the program does not give"}};
  return kMarks;
}

}  // namespace

std::string_view ReferenceOf(const Classification& classification) {
  const bool by_itself = !classification.piece.empty() && !classification.piece.starts_with("steps ");
  return by_itself ? "result of its operands" : "value";
}

std::string CellText(const ValueResult& value) {
  const Classification& classification = value.classification;
  const std::string dtype = Brief(Name(value.dtype));
  switch (classification.kind) {
    case ClassificationKind::kNotFloating:
      return (classification.checked > 0 ? "=" : "") + dtype;
    case ClassificationKind::kNoReference:
      return "[" + dtype + "]";
    case ClassificationKind::kNotJudged:
      return "?" + dtype;
    case ClassificationKind::kWrongShape:
      return "shape!";
    case ClassificationKind::kWrongValue:
      return "value!";
    case ClassificationKind::kExactOnly:
      // One rounding of a step that every model rounds alike is no exact value.
      return (classification.max_ulp == 0 ? "=" : "") + dtype;
    case ClassificationKind::kUnmodelled:
      return "unmodelled";
    case ClassificationKind::kIdentified:
    case ClassificationKind::kIndistinguishable:
      break;
  }
  if (classification.models.empty()) return "unmodelled";
  return ClassText(classification) + (classification.rests_on_likelihood ? "~" : "");
}

int KeptBits(const ValueResult& value) {
  const Classification& classification = value.classification;
  if (classification.kind == ClassificationKind::kUnmodelled) return 0;
  int kept = kFloat32Bits;
  for (const auto& model : classification.models) {
    const Chain chain = MakeChain(model, classification, {Reading::Accumulator::kWide, Reading::Cuts::kTold});
    kept = std::min(kept, Narrowest(chain).bits);
  }
  return kept;
}

std::vector<std::string> CellLegend(const std::set<std::string>& cells) {
  std::vector<std::string> legend{"a>b rounded to a, then to b (the last is the store)",
                                  "(a) operands rounded to a",
                                  "*a each product rounded to a",
                                  "f32 float32, or wider where a narrower store hides it",
                                  "a..b? cannot be told apart, from a down to b",
                                  "~ likely, not proved",
                                  "=a exact, given its operands",
                                  "[a] no reference",
                                  "?a not judged (explain says why)",
                                  "- not in this run",
                                  "A B equal letters: equal bits"};
  for (const RareMark& mark : RareMarks()) {
    const std::string pattern(mark.pattern);
    const bool shown =
        std::ranges::any_of(cells, [&](const std::string& cell) { return SearchPattern(pattern, cell); });
    if (shown) legend.emplace_back(mark.entry);
  }
  return legend;
}

}  // namespace ulpscope
