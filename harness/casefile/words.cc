// The word sets.
#include "harness/casefile/words.h"

#include <algorithm>
#include <array>
#include <map>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/number.h"
#include "harness/words/aten.h"
#include "harness/words/backend_name.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsLetter(char c) { return IsLower(c) || (c >= 'A' && c <= 'Z'); }
bool IsWordChar(char c) { return IsLetter(c) || IsDigit(c) || c == '_'; }

template <class Test>
bool All(std::string_view text, Test test) {
  return std::ranges::all_of(text, test);
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
  if (IsTorchFunction(text)) return true;
  if (!text.starts_with("aten::")) return false;
  text.remove_prefix(6);
  const size_t dot = text.find('.');
  return MatchesName(text.substr(0, dot)) && (dot == text.npos || MatchesName(text.substr(dot + 1)));
}

bool MatchesTensorFile(std::string_view text) {
  constexpr std::string_view kEnd = ".safetensors";
  return text.ends_with(kEnd) && MatchesCaseName(text.substr(0, text.size() - kEnd.size()));
}

bool MatchesDigest(std::string_view text) {
  return text.size() == 64 &&
         std::ranges::all_of(text, [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); });
}

bool MatchesNumber(std::string_view text) { return ParseNumber(text).has_value(); }
bool MatchesLine(std::string_view text) { return !text.empty(); }

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
const Pattern& TensorFilePattern() {
  static const Pattern pattern{"a file beside the case file, NAME.safetensors",
                               "^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}[.]safetensors$", MatchesTensorFile};
  return pattern;
}
const Pattern& DigestPattern() {
  static const Pattern pattern{"a SHA-256 (64 hexadecimal digits)", "^[0-9a-f]{64}$", MatchesDigest};
  return pattern;
}
const Pattern& OpPattern() {
  static const Pattern pattern{
      "an op of the vocabulary, aten::NAME or a function of PyTorch (torch.NAME, torch.nn.functional.NAME)",
      "^(aten::[A-Za-z_][A-Za-z0-9_]{0,63}([.][A-Za-z_][A-Za-z0-9_]{0,63})?"
      "|torch[.]((nn[.]functional|special|linalg)[.])?[A-Za-z]([A-Za-z0-9_]{0,62}[A-Za-z0-9])?)$",
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
const Pattern& LinePattern() {
  static const Pattern pattern{"text", R"([\s\S])", MatchesLine};
  return pattern;
}

const Pattern& FacetPattern(std::string_view facet) {
  static const auto patterns = [] {
    std::map<std::string_view, Pattern> all;
    for (const FacetRow& row : Facets()) all[row.name] = {row.what, row.regex, row.knows};
    return all;
  }();
  return patterns.at(facet);
}

bool IsReservedName(std::string_view name) {
  // Words that occur next to value names in observe, contract and expect, that read as numbers, or that adapters answer
  // as text (names in _dtype).
  if (name.ends_with("_dtype")) return true;
  static constexpr std::array<std::string_view, 13> kReserved{
      "raised", "unsupported", "versions", "observations", "casts", "trace", "peak_bytes",
      "any",    "inf",         "nan",      "true",         "false", "none"};
  return Contains(kReserved, name);
}

bool IsTextObservation(std::string_view observed) {
  return observed.ends_with("_dtype") || observed == "trace" || observed == "peak_bytes";
}

}  // namespace ulpscope
