// Cells of the matrix.
#include "reports/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "harness/base/pattern.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

/// One intermediate rounding: its text and the number of significant bits that it keeps. Everything of float32's class
/// has 24.
struct Segment {
  std::string text;
  int bits = 0;
  bool of_operands = false;  ///< a rounding before the sums: shown in parentheses
  bool drops_subnormals = false;
};
using Chain = std::vector<Segment>;

/// A text, and whether it shows that subnormal numbers are dropped.
struct Shown {
  std::string text;
  bool drops_subnormals = false;
};

constexpr int kFloat32Bits = 24;
template <class Spec>
Segment Spell(const Spec& spec) {
  return {.text = Brief(spec),
          .bits = spec.bits(),
          .of_operands = false,
          .drops_subnormals = DropsSubnormals(spec)};
}

Segment Narrowest(const std::vector<Segment>& segments) {
  return *std::ranges::min_element(segments,
                                   [](const Segment& a, const Segment& b) { return a.bits < b.bits; });
}

std::vector<Segment> SpellRounded(const std::map<std::string, RoundSpec>& roundings) {
  std::vector<Segment> rounded;
  for (const auto& [name, spec] : roundings) {
    if (!spec.none()) rounded.push_back(Spell(spec));
  }
  return rounded;
}

/// The detail in which a model is shown: kWide does not distinguish accumulators of float32's class or wider, kWidest
/// not those that drop subnormals either; kLeftOut omits intermediates that were rounded before the sums.
struct Reading {
  enum class Accumulator { kNamed, kWide, kWidest } accumulator = Accumulator::kNamed;
  enum class Cuts { kTold, kLeftOut } cuts = Cuts::kTold;
};

/// The roundings before the sums: operands, and intermediates that feed the sums.
void AppendInputs(const PrecisionModel& model, const Classification& classification, const Reading& reading,
                  Chain* chain) {
  std::vector<Segment> before = SpellRounded(model.in);
  // With sums and without `mid`, cuts are roundings before the sums; see Between for the others.
  if (!classification.facets.acc.empty() && model.mid.none() && reading.cuts == Reading::Cuts::kTold) {
    const auto cuts = SpellRounded(model.cuts);
    before.insert(before.end(), cuts.begin(), cuts.end());
  }
  if (!before.empty()) {
    Segment narrowest = Narrowest(before);
    narrowest.text = "(" + narrowest.text + ")";
    narrowest.of_operands = true;
    chain->push_back(std::move(narrowest));
  }
  if (!classification.facets.prod.empty() && !model.prod.none()) {
    Segment prod = Spell(model.prod);
    // Elementary steps in the format of the sums are one thing to the reader.
    if (prod.text == Spell(model.acc).text) return;
    prod.text = "*" + prod.text;
    chain->push_back(std::move(prod));
  }
}

/// The rounding between the sums and the output, if there is one; without sums, the narrowest intermediate rounding.
std::optional<Segment> Between(const PrecisionModel& model, const Classification& classification) {
  std::vector<Segment> rounded;
  if (!model.mid.none()) rounded.push_back(Spell(model.mid));
  if (classification.facets.acc.empty()) {
    const auto cuts = SpellRounded(model.cuts);
    rounded.insert(rounded.end(), cuts.begin(), cuts.end());
  }
  return rounded.empty() ? std::nullopt : std::optional(Narrowest(rounded));
}

/// One name for all of float32's class, whatever the direction of rounding.
Segment Widen(Segment segment) {
  if (segment.bits >= kFloat32Bits) {
    segment.text = segment.bits >= 53 && segment.bits < kAllBits ? "f64" : "f32";
    segment.drops_subnormals = false;
  }
  return segment;
}

/// The chain of one model.
Chain MakeChain(const PrecisionModel& model, const Classification& classification, const Reading& reading) {
  Chain chain;
  AppendInputs(model, classification, reading, &chain);
  const bool wide = reading.accumulator != Reading::Accumulator::kNamed;
  const bool flushed = model.acc.flushes() && reading.accumulator != Reading::Accumulator::kWidest;
  const Segment out = wide ? Widen(Spell(model.out)) : Spell(model.out);
  std::optional<Segment> between = Between(model, classification);
  if (wide && between && between->bits >= kFloat32Bits) between.reset();  // one more of the wide formats
  if (!classification.facets.acc.empty()) {
    Segment acc = Spell(model.acc);
    if (wide && acc.bits >= kFloat32Bits) {
      acc.text = flushed ? "f32ftz" : "f32";
      acc.drops_subnormals = flushed;
    }
    // Sums in the format of the output, and float32 or wider sums with a float32 output, look the same to the reader.
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

bool Drops(const Chain& chain) { return std::ranges::any_of(chain, &Segment::drops_subnormals); }

/// The one chain that all models share; nothing when they differ.
std::optional<Shown> Shared(const Classification& classification, const Reading& reading) {
  std::optional<Shown> shared;
  for (const auto& model : classification.models) {
    const Chain chain = MakeChain(model, classification, reading);
    if (shared && shared->text != Text(chain)) return std::nullopt;
    shared = {.text = Text(chain), .drops_subnormals = Drops(chain)};
  }
  return shared;
}

std::string Plain(std::string text) {
  text.erase(
      std::remove_if(text.begin(), text.end(), [](char c) { return c == '(' || c == ')' || c == '*'; }),
      text.end());
  return text;
}

/// "f32..bf16": the narrowest intermediate format in the model that rounds least, and in the one that rounds most.
Shown Span(const Classification& classification, const Segment& worst) {
  std::optional<Segment> least;
  for (const auto& model : classification.models) {
    const Segment narrowest =
        Narrowest(MakeChain(model, classification, {Reading::Accumulator::kWide, Reading::Cuts::kLeftOut}));
    if (!least || narrowest.bits > least->bits) least = narrowest;
  }
  if (!least || least->bits <= worst.bits)
    return {.text = Plain(worst.text), .drops_subnormals = worst.drops_subnormals};
  return {.text = Plain(least->text) + ".." + Plain(worst.text),
          .drops_subnormals = least->drops_subnormals || worst.drops_subnormals};
}

/// "f16|tf32": operands of as few bits as `worst` in one model or another; ways of rounding are left out.
Shown AsNarrow(std::span<const Segment> all, const Segment& worst) {
  std::map<std::string, bool> names;  // and whether it drops subnormals
  for (const Segment& segment : all) {
    if (segment.bits == worst.bits && segment.of_operands)
      names.emplace(Plain(segment.text), segment.drops_subnormals);
  }
  Shown shown;
  std::string last;
  for (const auto& [name, drops] : names) {
    if (!last.empty() && name.starts_with(last)) continue;
    shown.text += (shown.text.empty() ? "" : "|") + name;
    shown.drops_subnormals = shown.drops_subnormals || drops;
    last = name;
  }
  return shown;
}

/// The chain that all models share; else the span of the narrowest intermediate formats.
Shown Rounding(const Classification& classification) {
  using enum Reading::Accumulator;
  using enum Reading::Cuts;
  for (const Reading& reading : {Reading{kNamed, kTold}, Reading{kWide, kTold}, Reading{kWidest, kTold},
                                 Reading{kNamed, kLeftOut}, Reading{kWide, kLeftOut}}) {
    if (auto same = Shared(classification, reading)) return *std::move(same);
  }
  std::vector<Segment> all;
  std::map<std::string, bool> outs;  // and whether it drops subnormals
  for (const auto& model : classification.models) {
    const Chain chain = MakeChain(model, classification, {kNamed, kLeftOut});
    all.insert(all.end(), chain.begin(), chain.end());
    outs.emplace(chain.back().text, chain.back().drops_subnormals);
  }
  const Segment worst = Narrowest(all);
  const Shown span = Span(classification, worst);
  const std::string out = outs.size() == 1 ? outs.begin()->first : "";
  const bool out_drops = outs.size() == 1 && outs.begin()->second;
  // float32 or wider all the way into float32: float32, as for an accumulator alone.
  const int out_bits = Spell(classification.models.front().out).bits;
  if (!out.empty() && out_bits >= kFloat32Bits && worst.bits >= out_bits)
    return {.text = out, .drops_subnormals = out_drops};
  // Operands stay in parentheses, whatever they are rounded to.
  const bool operands = std::ranges::all_of(classification.models, [](const PrecisionModel& model) {
    return std::ranges::any_of(model.in, [](const auto& in) { return !in.second.none(); });
  });
  if (operands && worst.of_operands) {
    const Shown narrow = span.text == Plain(worst.text) ? AsNarrow(all, worst) : span;
    return {.text = fmt::format("({}?)>{}", narrow.text, out.empty() ? "?" : out),
            .drops_subnormals = narrow.drops_subnormals || out_drops};
  }
  const bool one = out.empty() || Plain(worst.text) == out;
  if (one) return {.text = span.text + "?", .drops_subnormals = span.drops_subnormals};
  return {.text = span.text + "?>" + out, .drops_subnormals = span.drops_subnormals || out_drops};
}

/// Drops models whose output rounding truncates or rounds ties away if one to nearest even explains as much: a cell
/// shows the usual rounding.
Classification WithoutOddStores(Classification classification) {
  const auto usual = [](const PrecisionModel& model) { return model.out.to_nearest(); };
  auto& models = classification.models;
  if (std::ranges::any_of(models, usual))
    std::erase_if(models, [&](const PrecisionModel& model) { return !usual(model); });
  return classification;
}

/// A dropped subnormal is shown even if the models disagree about the place.
std::string ClassText(const Classification& classification) {
  const auto drops = [](const PrecisionModel& model) {
    return model.acc.flushes() ||
           std::ranges::any_of(model.in, [](const auto& in) { return in.second.drops_operands(); });
  };
  const Shown shown = Rounding(WithoutOddStores(classification));
  const bool untold = !shown.drops_subnormals && std::ranges::all_of(classification.models, drops);
  return untold ? "(ftz)>" + shown.text : shown.text;
}

/// A mark that few matrices have: its form in a cell, and its meaning.
struct RareMark {
  std::string pattern, entry;
};

const std::vector<RareMark>& RareMarks() {
  static const std::vector<RareMark> marks = [] {
    std::vector<RareMark> all{
        {"(^|[>(])[^>(?.]+[?]", "a? a at the narrowest; these inputs do not show how often"},
        {"[|]", "a|b one of these, which are as narrow"}};
    const auto add = [&](const std::vector<BriefMark>& marks_of) {
      for (const BriefMark& each : marks_of)
        all.push_back({std::string(each.mark), fmt::format("{} {}", each.mark, each.about)});
    };
    add(RoundingMarks());
    all.insert(all.end(), {{"daz", "daz subnormal operands taken as zero"},
                           {"ftz", "ftz subnormal results taken as zero"},
                           {"bfma[0-9]", "bfmaN blocks of products added at once, N bits kept"},
                           {"split[(]", "split(a) partial sums in a"}});
    add(AccMarks());
    all.insert(all.end(), {{"x[0-9]", "axN operands as parts in a, N products of them"},
                           {"(^|[>(*.])p[0-9]", "pN a format of N significant bits"},
                           {"exact", "exact nothing rounded before the output"}});
    for (const ClassificationRow& row : kClassificationRows) {
      if (!row.legend.empty())
        all.push_back({std::string(row.cell), fmt::format("{} {}", row.cell, row.legend)});
    }
    return all;
  }();
  return marks;
}

}  // namespace

std::string_view ReferenceOf(const Classification& classification) {
  const bool by_itself = !classification.piece.empty() && !classification.piece.starts_with("steps ");
  return by_itself ? "result of its operands" : "value";
}

bool HasOwnError(const Classification& classification) {
  return classification.step_ulp >= 0 && ReferenceOf(classification) != "value";
}

std::string ErrorText(const Classification& classification) {
  const auto at_most = [](double ulp, std::string_view of) {
    return fmt::format("at most {:.4g} ulp from the exact {}", ulp, of);
  };
  if (!HasOwnError(classification)) return at_most(classification.max_ulp, ReferenceOf(classification));
  return at_most(classification.step_ulp, ReferenceOf(classification)) +
         fmt::format(", {:.4g} from that of the program", classification.max_ulp);
}

namespace {

/// True for a value that equals the exact result; a value with models is left to them.
bool IsExact(const Classification& classification) {
  if (classification.kind == ClassificationKind::kNotFloating) return classification.checked > 0;
  // One rounding of a step that every model rounds alike is no exact value.
  return classification.kind == ClassificationKind::kExactOnly &&
         (classification.step_ulp < 0 ? classification.max_ulp : classification.step_ulp) == 0;
}

}  // namespace

std::string CellText(const ValueResult& value) {
  const Classification& classification = value.classification;
  const std::string dtype = Brief(Name(value.dtype));
  if (const std::string_view cell = RowOf(classification.kind).cell; !cell.empty()) {
    const size_t at = cell.find('$');
    const std::string shown = at == cell.npos
                                  ? std::string(cell)
                                  : fmt::format("{}{}{}", cell.substr(0, at), dtype, cell.substr(at + 1));
    return (IsExact(classification) ? "=" : "") + shown;
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
  std::vector<std::string> legend{"a>b rounded to a, then to b (the last is the output)",
                                  "(a) operands rounded to a",
                                  "*a each product rounded to a",
                                  "f32 float32, or wider where a narrower output hides it",
                                  "a..b? indistinguishable, from a down to b",
                                  "~ likely, not proved",
                                  "=a exact, given its operands",
                                  "[a] no reference",
                                  "?a not judged (explain shows why)",
                                  "- not in this run",
                                  "A B equal letters: equal bits"};
  for (const RareMark& mark : RareMarks()) {
    const bool shown = std::ranges::any_of(
        cells, [&](const std::string& cell) { return SearchPattern(mark.pattern, cell); });
    if (shown) legend.push_back(mark.entry);
  }
  return legend;
}

}  // namespace ulpscope
