// The words of operands, products, intermediates and stores, and their spellings.
#include "harness/words/facets.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/words/facet_words.h"

namespace ulpscope {
namespace {

std::vector<std::string> FormatNames() { return Mapped<std::string>(AllFormats(), &FloatFormat::name); }

/// Operands that are split into pieces: bf16x9 takes three pieces and all nine products of theirs.
struct SplitRow {
  std::string_view word;
  const FloatFormat& (*format)();
  int pieces, passes;
};
constexpr std::array kSplits{SplitRow{"bf16x3", Bfloat16, 2, 3}, SplitRow{"bf16x6", Bfloat16, 3, 6},
                             SplitRow{"bf16x9", Bfloat16, 3, 9}, SplitRow{"tf32x3", Tf32, 2, 3}};

/// "bfloat16_rne".
std::optional<RoundSpec> ParseRounded(std::string_view word) {
  const auto parsed = ParseFormatAndMode(word);
  if (!parsed) return std::nullopt;
  return RoundSpec{.format = parsed->format, .rounding = parsed->rounding};
}

template <auto Parse>
bool Knows(std::string_view word) {
  return Parse(word).has_value();
}

}  // namespace

double RoundSpec::Apply(double value) const {
  if (drops_operands() && std::fabs(value) < std::ldexp(1.0, daz_below)) return std::copysign(0.0, value);
  if (format == nullptr) return value;
  double sum = RoundTo(value, *format, rounding, subnormals), rest = value - sum;
  for (int piece = 1; piece < pieces && std::isfinite(sum); ++piece) {
    const double next = RoundTo(rest, *format, rounding, subnormals);
    sum += next;
    rest -= next;
  }
  return sum;
}

std::optional<RoundSpec> ParseIn(std::string_view word) {
  const bool daz = TakeSuffix(&word, "+daz");
  RoundSpec spec;
  const auto split = std::ranges::find_if(kSplits, [&](const SplitRow& row) { return row.word == word; });
  if (split != kSplits.end()) {
    spec.format = &split->format();
    spec.pieces = split->pieces;
    spec.passes = split->passes;
  } else if (word != "as_is") {
    const auto parsed = ParseRounded(word);
    if (!parsed) return std::nullopt;
    spec = *parsed;
  }
  if (daz) spec.daz_below = spec.format == nullptr ? Binary32().emin : spec.format->emin;
  return spec;
}

std::optional<RoundSpec> ParseProd(std::string_view word) {
  if (Contains(ProdWords(), word)) return RoundSpec{.format = FindFormat(word)};
  const FloatFormat* bits = FindBits(word);
  return bits == nullptr ? std::nullopt : std::optional(RoundSpec{.format = bits});
}

std::optional<RoundSpec> ParseMid(std::string_view word) {
  if (word == "none") return RoundSpec{};
  const FloatFormat* format = FormatOrBits(word);
  return format == nullptr ? std::nullopt : std::optional(RoundSpec{.format = format});
}

std::optional<RoundSpec> ParseOut(std::string_view word) {
  const bool flushed = TakeSuffix(&word, "+ftz");
  const bool faithful = TakeSuffix(&word, "_faithful");
  auto spec =
      faithful ? std::optional(RoundSpec{.format = FindFormat(word), .faithful = true}) : ParseRounded(word);
  if (!spec || spec->format == nullptr || !ParseDType(spec->format->name)) return std::nullopt;
  if (flushed) spec->subnormals = Subnormals::kFlushed;
  return spec;
}

std::string InWord(const RoundSpec& in) {
  const std::string daz = in.drops_operands() ? "+daz" : "";
  const auto split = std::ranges::find_if(kSplits, [&](const SplitRow& row) {
    return in.rounds_to(row.format()) && in.pieces == row.pieces && in.passes == row.passes;
  });
  if (split != kSplits.end()) return std::string(split->word) + daz;
  return (in.format == nullptr ? "as_is" : WithMode(*in.format, in.rounding)) + daz;
}

std::string ProdWord(const RoundSpec& prod) {
  return prod.format == nullptr ? "exact" : std::string(prod.format->name);
}

std::string MidWord(const RoundSpec& mid) {
  return mid.format == nullptr ? "none" : std::string(mid.format->name);
}

std::string OutWord(const RoundSpec& out) {
  if (out.format == nullptr) return "none";
  const std::string word =
      out.faithful ? std::string(out.format->name) + "_faithful" : WithMode(*out.format, out.rounding);
  return word + (out.subnormals == Subnormals::kFlushed ? "+ftz" : "");
}

std::string Brief(const RoundSpec& spec) {
  std::string text;
  if (spec.pieces > 1)
    text = Brief(spec.format->name) + "x" + std::to_string(spec.passes);
  else if (spec.format != nullptr)
    text = Brief(spec.format->name) + BriefMode(spec.rounding);
  if (spec.drops_operands()) text += "daz";
  return spec.subnormals == Subnormals::kFlushed ? text + "ftz" : text;
}

std::vector<BriefMark> RoundingMarks() {
  std::vector<BriefMark> marks;
  for (const std::string& name : AllRoundingNames()) {
    const Rounding rounding = *ParseRounding(name);
    if (!About(rounding).empty()) marks.push_back({Name(rounding), About(rounding)});
  }
  return marks;
}

const std::vector<std::string>& InWords() {
  static const std::vector<std::string> words{"as_is",    "bfloat16_rne", "bfloat16_rz", "tf32_rne",
                                              "tf32_rna", "tf32_rz",      "float16_rne", "bf16x3",
                                              "bf16x6",   "bf16x9",       "tf32x3"};
  return words;
}
const std::vector<std::string>& ProdWords() {
  static const std::vector<std::string> words{"exact", "float32", "float16", "bfloat16"};
  return words;
}
const std::vector<std::string>& MidWords() {
  static const std::vector<std::string> words{"none", "bfloat16", "float16", "tf32", "float32"};
  return words;
}

const std::vector<FacetRow>& Facets() {
  static const std::vector<FacetRow> rows = [] {
    std::vector<std::string> splits, stored;
    for (const SplitRow& row : kSplits) splits.emplace_back(row.word);
    for (const DType dtype : AllDTypes()) {
      if (IsFloating(dtype)) stored.emplace_back(Name(dtype));
    }
    std::vector<std::string> outs = AllRoundingNames();
    outs.emplace_back("faithful");
    const std::string formats = Alternatives(FormatNames()), modes = "_" + Alternatives(AllRoundingNames());
    return std::vector<FacetRow>{
        {"in", "a word for how an operand is rounded (as_is, bfloat16_rne, tf32_rna ...)",
         "^(as_is|" + Join(splits, "|") + "|(" + formats + "|" + std::string(kBitsPattern) + ")" + modes +
             ")([+]daz)?$",
         Knows<ParseIn>},
        {"prod", "exact, float32, float16, bfloat16 or p<bits>",
         "^(" + Join(ProdWords(), "|") + "|" + std::string(kBitsPattern) + ")$", Knows<ParseProd>},
        {"acc", "a word for the accumulator (float32, at_least_float32, bfloat16, blockfma(8,24,rz) ...)",
         AccPattern(), KnowsAcc},
        {"mid", "none, bfloat16, float16, tf32, float32 or p<bits>",
         "^(none|" + formats + "|" + std::string(kBitsPattern) + ")$", Knows<ParseMid>},
        {"out",
         "a dtype and a rounding, as in float32_rne; _faithful: one of the two neighbours, not always the "
         "nearest",
         "^" + Alternatives(stored) + "_" + Alternatives(outs) + "([+]ftz)?$", Knows<ParseOut>}};
  }();
  return rows;
}

}  // namespace ulpscope
