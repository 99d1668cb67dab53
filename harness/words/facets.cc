// The tables of facet words, their parsers and spellings.
#include "harness/words/facets.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/base/find.h"
#include "harness/base/text.h"

namespace ulpscope {
namespace {

using Arguments = std::vector<std::string>;

bool TakeSuffix(std::string_view* word, std::string_view suffix) {
  const bool found = word->ends_with(suffix);
  if (found) word->remove_suffix(suffix.size());
  return found;
}

/// A number without leading zeros between `low` and `high`.
std::optional<int> Number(std::string_view text, int low, int high) {
  const auto value = WholeNumber<int>(text);
  return value && !text.starts_with('0') && *value >= low && *value <= high ? value : std::nullopt;
}

std::string Alternatives(const std::vector<std::string>& words) { return "(" + Join(words, "|") + ")"; }

std::vector<std::string> FormatNames() { return Mapped<std::string>(AllFormats(), &FloatFormat::name); }

/// A format by the bits that it keeps of float32: p12.
const FloatFormat* FindBits(std::string_view word) {
  const auto bits = word.starts_with('p') ? Number(word.substr(1), 2, 52) : std::nullopt;
  return bits ? &FormatOfBits(*bits) : nullptr;
}

/// A format by its name, or by its bits.
const FloatFormat* FormatOrBits(std::string_view word) {
  const FloatFormat* format = FindFormat(word);
  return format != nullptr ? format : FindBits(word);
}

constexpr std::string_view kBitsPattern = "p([2-9]|[1-4][0-9]|5[0-2])";

/// "bfloat16_rne": format and mode.
std::optional<RoundSpec> ParseFormatAndMode(std::string_view word) {
  const size_t split = word.rfind('_');
  if (split == word.npos) return std::nullopt;
  const auto mode = ParseRounding(word.substr(split + 1));
  RoundSpec spec;
  spec.format = FormatOrBits(word.substr(0, split));
  if (!mode || spec.format == nullptr) return std::nullopt;
  spec.rounding = *mode;
  return spec;
}

/// Operands that are split into pieces: bf16x9 takes three pieces and all nine products of theirs.
struct SplitRow {
  std::string_view word;
  const FloatFormat& (*format)();
  int pieces, passes;
};
constexpr std::array kSplits{SplitRow{"bf16x3", Bfloat16, 2, 3}, SplitRow{"bf16x6", Bfloat16, 3, 6},
                             SplitRow{"bf16x9", Bfloat16, 3, 9}, SplitRow{"tf32x3", Tf32, 2, 3}};

/// One kind of accumulator. Its arithmetic is in oracles/dot/sum.cc, its bound in oracles/models.cc.
struct AccRow {
  std::string_view word;  ///< or what stands before the parentheses
  /// What the word says; of a kind with arguments what `read` adds them to.
  AccSpec spec;
  std::string arguments;  ///< a pattern; "" for a kind that takes none
  bool (*read)(const Arguments& arguments, AccSpec* spec);
  std::vector<std::string>
      bank;  ///< the arguments that the bank tries; of a kind without any one empty entry
};

bool ReadBlock(const Arguments& arguments, AccSpec* spec) {
  if (arguments.size() != 3) return false;
  std::string_view mode = arguments[2];
  if (TakeSuffix(&mode, "_float16")) {
    spec->format = &Binary16();
    if (mode != "rne") return false;
  }
  const auto block = Number(arguments[0], 2, 64), fraction = Number(arguments[1], 8, 40);
  const auto rounding = ParseRounding(mode);
  if (!block || !fraction || !rounding) return false;
  spec->block = *block;
  spec->fraction = *fraction;
  spec->rounding = *rounding;
  return true;
}

bool ReadSplit(const Arguments& arguments, AccSpec* spec) {
  if (arguments.size() != 2) return false;
  for (const auto format : {Binary64, Binary32, Binary16, Bfloat16}) {
    if (format().name == arguments[0]) spec->partial = &format();
    if (format().name == arguments[1]) spec->combine = &format();
  }
  if (spec->combine == nullptr) spec->combine = FindBits(arguments[1]);
  return spec->partial != nullptr && spec->combine != nullptr;
}

const std::vector<AccRow>& AccRows() {
  static const std::vector<AccRow> rows = [] {
    std::vector<AccRow> all;
    const auto plain = [&](std::string_view word, const AccSpec& spec) {
      all.push_back({word, spec, "", nullptr, {""}});
    };
    plain("exact", {});
    plain("float64", {.format = &Binary64()});
    plain("compensated", {.format = &Binary32(), .compensated = true});
    plain("float32", {.format = &Binary32()});
    plain("float32_rz", {.format = &Binary32(), .rounding = Rounding::kTowardZero});
    // BFDOT and BFMMLA of Arm round to odd and drop subnormals (Arm A-profile A64, where FPCR.EBF is 0). Its
    // error lies inside float32_rz's bound: it would join every set that holds that, so only probes, which
    // know single sums, are asked for it.
    all.push_back({"float32_odd", {.format = &Binary32(), .rounding = Rounding::kToOdd}, "", nullptr, {}});
    all.push_back(
        {"blockfma",
         {.format = &Binary32()},
         "([2-9]|[1-5][0-9]|6[0-4]),([89]|[1-3][0-9]|40),(" + Join(AllRoundingNames(), "|") + "|rne_float16)",
         ReadBlock,
         {"4,23,rz", "8,23,rz", "4,24,rz", "8,24,rz", "16,24,rz", "8,25,rz", "16,25,rz", "16,26,rz",
          "32,25,rz", "32,13,rz", "4,23,rne_float16", "8,24,rne_float16", "16,25,rne_float16"}});
    plain("float16", {.format = &Binary16()});
    plain("float16_via_float32", {.format = &Binary16(), .via_float32 = true});
    plain("bfloat16", {.format = &Bfloat16()});
    plain("bfloat16_via_float32", {.format = &Bfloat16(), .via_float32 = true});
    all.push_back({"split_k",
                   {.format = &Binary32()},
                   "(float64|float32|float16|bfloat16),(float64|float32|float16|bfloat16|" +
                       std::string(kBitsPattern) + ")",
                   ReadSplit,
                   {"bfloat16,float32", "bfloat16,bfloat16", "float16,float32", "float16,float16"}});
    return all;
  }();
  return rows;
}

/// Which words there are of a mode, as a cell shows them: nothing for the usual one.
std::string BriefMode(Rounding rounding) {
  return rounding == Rounding::kNearestEven ? "" : std::string(Name(rounding));
}

std::string AccPattern() {
  std::vector<std::string> classes, kinds;
  for (const AccClass& each : AccClasses()) classes.emplace_back(each.name);
  for (const AccRow& row : AccRows()) {
    if (row.spec.exact())
      classes.emplace_back(row.word);
    else
      kinds.push_back(std::string(row.word) + (row.read == nullptr ? "" : "[(]" + row.arguments + "[)]"));
  }
  std::vector<std::string> modes = AllRoundingNames();
  std::erase(modes, std::string("rne"));
  kinds.push_back(std::string(kBitsPattern) + "(_" + Alternatives(modes) + ")?");
  return "^" + Alternatives(classes) + "$|^" + Alternatives(kinds) + "([+]ftz)?$";
}

bool KnowsAcc(std::string_view word) {
  return ParseAcc(word).has_value() ||
         std::ranges::any_of(AccClasses(), [&](const AccClass& each) { return each.name == word; });
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

int AccSpec::bits() const {
  if (exact()) return kAllBits;
  if (partial != nullptr) return std::min(partial->precision, combine->precision);
  return block > 0 ? std::min(fraction + 1, format->precision) : format->precision;
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
    const auto parsed = ParseFormatAndMode(word);
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

std::optional<AccSpec> ParseAcc(std::string_view word) {
  const bool flushed = TakeSuffix(&word, "+ftz");
  if (const FloatFormat* bits = FindBits(word))
    return AccSpec{.format = bits, .subnormals = flushed ? Subnormals::kFlushed : Subnormals::kGradual};
  if (const auto mode = ParseFormatAndMode(word);
      mode && word.starts_with('p') && mode->rounding != Rounding::kNearestEven)
    return AccSpec{.format = mode->format,
                   .rounding = mode->rounding,
                   .subnormals = flushed ? Subnormals::kFlushed : Subnormals::kGradual};
  const size_t open = word.find('(');
  const std::string_view head = word.substr(0, open);
  for (const AccRow& row : AccRows()) {
    if (row.word != head || (row.read == nullptr) != (open == word.npos)) continue;
    AccSpec spec = row.spec;
    if (row.read != nullptr &&
        (!word.ends_with(')') ||
         !row.read(SplitOutsideParentheses(word.substr(open + 1, word.size() - open - 2), ','), &spec)))
      return std::nullopt;
    if (flushed && spec.exact()) return std::nullopt;
    if (flushed) spec.subnormals = Subnormals::kFlushed;
    return spec;
  }
  return std::nullopt;
}

std::optional<RoundSpec> ParseMid(std::string_view word) {
  if (word == "none") return RoundSpec{};
  const FloatFormat* format = FormatOrBits(word);
  return format == nullptr ? std::nullopt : std::optional(RoundSpec{.format = format});
}

std::optional<RoundSpec> ParseOut(std::string_view word) {
  const bool flushed = TakeSuffix(&word, "+ftz");
  const bool faithful = TakeSuffix(&word, "_faithful");
  auto spec = faithful ? std::optional(RoundSpec{.format = FindFormat(word), .faithful = true})
                       : ParseFormatAndMode(word);
  if (!spec || spec->format == nullptr || !ParseDType(spec->format->name)) return std::nullopt;
  if (flushed) spec->subnormals = Subnormals::kFlushed;
  return spec;
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

std::string Brief(const AccSpec& spec) {
  if (spec.exact()) return "exact";
  std::string text = spec.compensated          ? "comp"
                     : spec.partial != nullptr ? "split(" + Brief(spec.partial->name) + ")"
                     : spec.block > 0          ? "bfma" + std::to_string(spec.fraction) +
                                            (spec.format == &Binary32() ? "" : Brief(spec.format->name))
                                      : Brief(spec.format->name) + BriefMode(spec.rounding);
  return spec.subnormals == Subnormals::kFlushed ? text + "ftz" : text;
}

const std::vector<AccClass>& AccClasses() {
  static const std::vector<AccClass> classes{
      // What drops subnormals has not all numbers of float32: who accepts that says so, as in [at_least_float32, float32+ftz].
      {"at_least_float32",
       [](const AccSpec& acc) { return acc.wide() && acc.subnormals == Subnormals::kGradual; }},
      {"float32_class",
       [](const AccSpec& acc) {
         return acc.wide() && acc.subnormals == Subnormals::kGradual && acc.bits() == Binary32().precision &&
                !acc.compensated;
       }},
      {"blockfma", [](const AccSpec& acc) { return acc.block > 0; }}};
  return classes;
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
const std::vector<std::string>& AccWords() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all;
    for (const AccRow& row : AccRows()) {
      for (const auto& arguments : row.bank)
        all.push_back(std::string(row.word) + (arguments.empty() ? "" : "(" + arguments + ")"));
    }
    return all;
  }();
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
