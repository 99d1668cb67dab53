// The accumulators: one row a word, their parser and spelling.
#include <algorithm>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/words/facet_words.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

using Arguments = std::vector<std::string>;

/// One kind of accumulator. Its arithmetic is in oracles/dot/sum.cc, its bound in oracles/models.cc.
struct AccRow {
  std::string_view word;  ///< or what stands before the parentheses
  /// The accumulator of the word; for a kind with arguments the one that `read` adds them to.
  AccSpec spec;
  std::string arguments;  ///< a pattern; "" for a kind that takes none
  bool (*read)(const Arguments& arguments, AccSpec* spec);
  std::vector<std::string>
      bank;              ///< the arguments that the bank tries; of a kind without any one empty entry
  BriefMark brief = {};  ///< in a cell, where that is no format
};

bool ReadBlock(const Arguments& arguments, AccSpec* spec) {
  if (arguments.size() != 3) return false;
  std::string_view mode = arguments[2];
  if (TakeSuffix(&mode, "_float16")) {
    spec->format = &Binary16();
    if (mode != "rne") return false;
  }
  const auto block = NumberBetween(arguments[0], 2, 64), fraction = NumberBetween(arguments[1], 8, 40);
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
    const auto plain = [&](std::string_view word, const AccSpec& spec, BriefMark brief = {}) {
      all.push_back({word, spec, "", nullptr, {""}, brief});
    };
    plain("exact", {});
    plain("float64", {.format = &Binary64()});
    plain("compensated", {.format = &Binary32(), .two_words = TwoWords::kSum2}, {"comp", "compensated sums"});
    plain("float32", {.format = &Binary32()});
    plain("float32_rz", {.format = &Binary32(), .rounding = Rounding::kTowardZero});
    // BFDOT and BFMMLA of Arm round to odd and drop subnormals (Arm A-profile A64, where FPCR.EBF is 0). Its
    // error lies inside float32_rz's bound: it would join every set that holds that, so it is a candidate for
    // probes only, which know single sums.
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

}  // namespace

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

int AccSpec::bits() const {
  if (exact()) return kAllBits;
  if (partial != nullptr) return std::min(partial->precision, combine->precision);
  return block > 0 ? std::min(fraction + 1, format->precision) : format->precision;
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

std::string AccWord(const AccSpec& acc) {
  const std::string ftz = acc.flushes() ? "+ftz" : "";
  AccSpec kept = acc;
  kept.subnormals = Subnormals::kGradual;
  for (const AccRow& row : AccRows()) {
    if (row.read == nullptr && row.spec == kept) return std::string(row.word) + ftz;
  }
  if (acc.block > 0)
    return "blockfma(" + std::to_string(acc.block) + "," + std::to_string(acc.fraction) + "," +
           std::string(Name(acc.rounding)) + (acc.format == &Binary16() ? "_float16)" : ")") + ftz;
  if (acc.partial != nullptr)
    return "split_k(" + std::string(acc.partial->name) + "," + std::string(acc.combine->name) + ")" + ftz;
  return (acc.rounding == Rounding::kNearestEven ? std::string(acc.format->name)
                                                 : WithMode(*acc.format, acc.rounding)) +
         ftz;
}

std::strong_ordering operator<=>(const AccSpec& a, const AccSpec& b) {
  return a == b ? std::strong_ordering::equal : AccWord(a) <=> AccWord(b);
}

std::string Brief(const AccSpec& spec) {
  if (spec.exact()) return "exact";
  AccSpec kept = spec;
  kept.subnormals = Subnormals::kGradual;
  const AccRow* named = FindIf(AccRows(), [&](const AccRow& row) {
    return !row.brief.mark.empty() && row.read == nullptr && row.spec == kept;
  });
  std::string text = named != nullptr          ? std::string(named->brief.mark)
                     : spec.partial != nullptr ? "split(" + Brief(spec.partial->name) + ")"
                     : spec.block > 0          ? "bfma" + std::to_string(spec.fraction) +
                                            (spec.format == &Binary32() ? "" : Brief(spec.format->name))
                                      : Brief(spec.format->name) + BriefMode(spec.rounding);
  return spec.subnormals == Subnormals::kFlushed ? text + "ftz" : text;
}

std::vector<BriefMark> AccMarks() {
  std::vector<BriefMark> marks;
  for (const AccRow& row : AccRows()) {
    if (!row.brief.mark.empty()) marks.push_back(row.brief);
  }
  return marks;
}

const std::vector<AccClass>& AccClasses() {
  static const std::vector<AccClass> classes{
      // An accumulator that flushes subnormals lacks some numbers of float32: a contract that accepts it
      // names it, as in [at_least_float32, float32+ftz].
      {"at_least_float32",
       [](const AccSpec& acc) { return acc.wide() && acc.subnormals == Subnormals::kGradual; }},
      {"float32_class",
       [](const AccSpec& acc) {
         return acc.wide() && acc.subnormals == Subnormals::kGradual && acc.bits() == Binary32().precision &&
                !acc.in_two_words();
       }},
      {"blockfma", [](const AccSpec& acc) { return acc.block > 0; }}};
  return classes;
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

}  // namespace ulpscope
