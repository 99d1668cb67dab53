// The word sets.
#include "harness/casefile/words.h"

#include <algorithm>
#include <array>

#include "harness/base/check.h"
#include "harness/base/text.h"
#include "harness/casefile/number.h"
#include "harness/num/dtype.h"
#include "harness/words/backend_name.h"

namespace ulpscope {
namespace {

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsLetter(char c) { return IsLower(c) || (c >= 'A' && c <= 'Z'); }
bool IsWordChar(char c) { return IsLetter(c) || IsDigit(c) || c == '_'; }

template <class Test>
bool All(std::string_view text, Test test) {
  return std::all_of(text.begin(), text.end(), test);
}

bool MatchesName(std::string_view text) {
  return !text.empty() && text.size() <= 64 && !IsDigit(text[0]) && All(text, IsWordChar);
}

bool MatchesCaseName(std::string_view text) {
  return !text.empty() && text.size() <= 100 && IsWordChar(text[0]) &&
         All(text, [](char c) { return IsWordChar(c) || c == '-' || c == '.' || c == '+'; });
}

bool MatchesTag(std::string_view text) {
  return !text.empty() && text.size() <= 64 && IsLetter(text[0]) &&
         All(text, [](char c) { return IsWordChar(c) || c == '-'; });
}

bool MatchesValueKey(std::string_view text) {
  if (text.ends_with(".grad")) text.remove_suffix(std::string_view(".grad").size());
  return MatchesName(text);
}

bool MatchesObserved(std::string_view text) {
  for (const std::string_view suffix : {".grad_metadata_dtype", ".grad_dtype", ".grad"}) {
    if (text.ends_with(suffix)) return MatchesName(text.substr(0, text.size() - suffix.size()));
  }
  return MatchesName(text);
}

bool MatchesBackend(std::string_view text) { return BackendSpec::Parse(text).has_value(); }

bool MatchesVersions(std::string_view text) {
  const auto take = [&](auto test) {
    size_t n = 0;
    while (n < text.size() && test(text[n])) ++n;
    const std::string_view taken = text.substr(0, n);
    text.remove_prefix(n);
    return taken;
  };
  for (bool first = true;; first = false) {
    const auto package = take([](char c) { return IsWordChar(c) || c == '-'; });
    if (package.empty() ? first : !IsLetter(package[0])) return false;
    const auto relation = take([](char c) { return c == '<' || c == '>' || c == '=' || c == '!'; });
    if (relation != "<" && relation != "<=" && relation != ">" && relation != ">=" && relation != "==" &&
        relation != "!=")
      return false;
    const auto version = take([](char c) { return IsDigit(c) || c == '.'; });
    if (version.empty() || !IsDigit(version.front()) || !IsDigit(version.back()) ||
        version.find("..") != version.npos)
      return false;
    if (text.empty()) return true;
    if (text[0] != ',') return false;
    text.remove_prefix(1);
  }
}

bool MatchesDate(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (const size_t i : {0, 1, 2, 3, 5, 6, 8, 9}) {
    if (!IsDigit(text[i])) return false;
  }
  const int month = (text[5] - '0') * 10 + text[6] - '0';
  const int day = (text[8] - '0') * 10 + text[9] - '0';
  return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

bool MatchesAtenOp(std::string_view text) {
  if (!text.starts_with("aten::")) return false;
  text.remove_prefix(6);
  const size_t dot = text.find('.');
  return MatchesName(text.substr(0, dot)) && (dot == text.npos || MatchesName(text.substr(dot + 1)));
}

bool MatchesNumber(std::string_view text) { return ParseNumber(text).has_value(); }
bool MatchesInteger(std::string_view text) { return ParseInteger(text).has_value(); }
bool MatchesLine(std::string_view text) { return !text.empty(); }

bool OneOf(std::string_view word, std::span<const std::string> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string_view WithoutSuffix(std::string_view text, std::string_view suffix) {
  return text.ends_with(suffix) ? text.substr(0, text.size() - suffix.size()) : text;
}

bool MatchesIn(std::string_view text) { return OneOf(WithoutSuffix(text, "+daz"), FacetWords("in")); }
bool MatchesProd(std::string_view text) { return OneOf(text, FacetWords("prod")); }

/// Classes of accumulators, by the lattice of the models; judge/contract.cc says what each holds.
constexpr std::array<std::string_view, 3> kAccClasses{"at_least_float32", "float32_class", "blockfma"};

bool MatchesAcc(std::string_view text) {
  if (std::find(kAccClasses.begin(), kAccClasses.end(), text) != kAccClasses.end()) return true;
  text = WithoutSuffix(text, "+ftz");
  if (OneOf(text, FacetWords("acc"))) return true;
  const auto arguments = [&](std::string_view name) {
    return text.starts_with(name) && text.ends_with(")")
               ? text.substr(name.size(), text.size() - name.size() - 1)
               : std::string_view();
  };
  if (const auto inside = arguments("blockfma("); !inside.empty()) {
    const size_t first = inside.find(',');
    const size_t second = first == inside.npos ? inside.npos : inside.find(',', first + 1);
    if (second == inside.npos) return false;
    const auto is_count = [](std::string_view n) {
      return !n.empty() && n.size() <= 3 && n[0] != '0' && All(n, IsDigit);
    };
    const std::string_view mode = inside.substr(second + 1);
    return is_count(inside.substr(0, first)) && is_count(inside.substr(first + 1, second - first - 1)) &&
           (mode == "rz" || mode == "rne" || mode == "rna" || mode == "rne_float16");
  }
  if (const auto inside = arguments("split_k("); !inside.empty()) {
    const size_t comma = inside.find(',');
    return comma != inside.npos && OneOf(inside.substr(0, comma), FacetWords("acc")) &&
           OneOf(inside.substr(comma + 1), FacetWords("acc"));
  }
  return false;
}

bool MatchesMid(std::string_view text) {
  if (OneOf(text, FacetWords("mid"))) return true;
  return text.size() >= 2 && text.size() <= 3 && text[0] == 'p' && text[1] != '0' &&
         All(text.substr(1), IsDigit);
}

bool MatchesOut(std::string_view text) { return OneOf(WithoutSuffix(text, "+ftz"), FacetWords("out")); }

const std::vector<std::string>& OutWords() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all;
    for (const auto& name : AllDTypeNames()) {
      if (!IsFloating(*ParseDType(name))) continue;
      for (const char* mode : {"_rne", "_rz", "_rna"}) all.push_back(name + mode);
    }
    return all;
  }();
  return words;
}

constexpr std::string_view kFacetAcc =
    "(exact|float64|float32|float32_rz|float16|float16_via_float32|bfloat16|bfloat16_via_float32|"
    "compensated)";

}  // namespace

const Pattern& NamePattern() {
  static const Pattern pattern{"a name (letters, digits, _)", "^[A-Za-z_][A-Za-z0-9_]{0,63}$", MatchesName};
  return pattern;
}
const Pattern& CaseNamePattern() {
  static const Pattern pattern{"a case name (letters, digits, _ - . +)",
                               "^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}$", MatchesCaseName};
  return pattern;
}
const Pattern& TagPattern() {
  static const Pattern pattern{"a tag (letters, digits, _ -)", "^[A-Za-z][A-Za-z0-9_-]{0,63}$", MatchesTag};
  return pattern;
}
const Pattern& ValueKeyPattern() {
  static const Pattern pattern{"the name of an observed value", "^[A-Za-z_][A-Za-z0-9_]{0,63}([.]grad)?$",
                               MatchesValueKey};
  return pattern;
}
const Pattern& ObservedPattern() {
  static const Pattern pattern{
      "a value, NAME.grad, NAME.grad_dtype, NAME.grad_metadata_dtype, trace or peak_bytes",
      "^[A-Za-z_][A-Za-z0-9_]{0,63}([.]grad|[.]grad_dtype|[.]grad_metadata_dtype)?$", MatchesObserved};
  return pattern;
}
const Pattern& BackendPattern() {
  static const Pattern pattern{"a backend, NAME[@DEVICE][:knob=value,...]", BackendSpec::Pattern(),
                               MatchesBackend};
  return pattern;
}
const Pattern& VersionsPattern() {
  static const Pattern pattern{"versions such as torch>=2.9,<2.16",
                               "^[A-Za-z][A-Za-z0-9_-]*(<=|>=|==|!=|<|>)[0-9]+([.][0-9]+)*"
                               "(,([A-Za-z][A-Za-z0-9_-]*)?(<=|>=|==|!=|<|>)[0-9]+([.][0-9]+)*)*$",
                               MatchesVersions};
  return pattern;
}
const Pattern& DatePattern() {
  static const Pattern pattern{"a date, YYYY-MM-DD", "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$",
                               MatchesDate};
  return pattern;
}
const Pattern& OpPattern() {
  static const Pattern pattern{"an op of the vocabulary or aten::NAME",
                               "^aten::[A-Za-z_][A-Za-z0-9_]{0,63}([.][A-Za-z_][A-Za-z0-9_]{0,63})?$",
                               MatchesAtenOp};
  return pattern;
}
const Pattern& NumberPattern() {
  static const Pattern pattern{
      "a number: 12, -0.5, 1e-5, 0x1.8p+1, 1/3, inf, nan",
      "^(nan|bits:0x[0-9A-Fa-f]{1,16}|-?(inf|0x[0-9A-Fa-f]+([.][0-9A-Fa-f]+)?[pP][+-]?[0-9]+"
      "|(0|[1-9][0-9]*)(/[1-9][0-9]*|([.][0-9]+)?([eE][+-]?[0-9]+)?)))$",
      MatchesNumber};
  return pattern;
}
const Pattern& IntegerPattern() {
  static const Pattern pattern{"an integer", "^-?(0|[1-9][0-9]*)$", MatchesInteger};
  return pattern;
}
const Pattern& LinePattern() {
  static const Pattern pattern{"text", R"([\s\S])", MatchesLine};
  return pattern;
}

const Pattern& FacetPattern(std::string_view facet) {
  static const std::string acc_regex =
      "^(at_least_float32|float32_class|blockfma)$|^(" + std::string(kFacetAcc) +
      "|blockfma[(][1-9][0-9]{0,2},[1-9][0-9]{0,2},(rz|rne|rna|rne_float16)[)]|split_k[(]" +
      std::string(kFacetAcc) + "," + std::string(kFacetAcc) + "[)])([+]ftz)?$";
  static const std::string out_regex = "^(" + Join(OutWords(), "|") + ")([+]ftz)?$";
  static const std::string in_regex = "^(" + Join(FacetWords("in"), "|") + ")([+]daz)?$";
  static const Pattern in{"a word for how an operand is rounded (as_is, bfloat16_rne, tf32_rna ...)",
                          in_regex, MatchesIn};
  static const Pattern prod{"exact, float32, float16 or bfloat16", "^(exact|float32|float16|bfloat16)$",
                            MatchesProd};
  static const Pattern acc{
      "a word for the accumulator (float32, at_least_float32, bfloat16, blockfma(8,24,rz) ...)", acc_regex,
      MatchesAcc};
  static const Pattern mid{"none, bfloat16, float16, tf32, float32 or p<bits>",
                           "^(none|bfloat16|float16|tf32|float32|p[1-9][0-9]?)$", MatchesMid};
  static const Pattern out{"a dtype and a rounding, as in float32_rne", out_regex, MatchesOut};
  for (const auto& [name, pattern] :
       {std::pair{"in", &in}, {"prod", &prod}, {"acc", &acc}, {"mid", &mid}, {"out", &out}}) {
    if (facet == name) return *pattern;
  }
  ULPSCOPE_CHECK(false, "unknown facet");
  return in;
}

std::span<const std::string> FacetWords(std::string_view facet) {
  static const std::vector<std::string> in{"as_is",    "bfloat16_rne", "bfloat16_rz", "tf32_rne",
                                           "tf32_rna", "tf32_rz",      "float16_rne", "bf16x3",
                                           "bf16x6",   "bf16x9",       "tf32x3"};
  static const std::vector<std::string> prod{"exact", "float32", "float16", "bfloat16"};
  static const std::vector<std::string> acc{"exact",      "float64",
                                            "float32",    "float32_rz",
                                            "float16",    "float16_via_float32",
                                            "bfloat16",   "bfloat16_via_float32",
                                            "compensated"};
  static const std::vector<std::string> mid{"none", "bfloat16", "float16", "tf32", "float32"};
  if (facet == "in") return in;
  if (facet == "prod") return prod;
  if (facet == "acc") return acc;
  if (facet == "mid") return mid;
  if (facet == "out") return OutWords();
  return {};
}

bool IsReservedName(std::string_view name) {
  // Words that stand beside value names in observe, contract and expect, that read as numbers, or that
  // adapters answer as text (names in _dtype).
  if (name.ends_with("_dtype")) return true;
  static constexpr std::array<std::string_view, 13> kReserved{
      "raised", "unsupported", "versions", "observations", "casts", "trace", "peak_bytes",
      "any",    "inf",         "nan",      "true",         "false", "none"};
  return std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end();
}

bool IsTextObservation(std::string_view observed) {
  return observed.ends_with("_dtype") || observed == "trace" || observed == "peak_bytes";
}

}  // namespace ulpscope
