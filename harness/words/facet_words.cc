// Parts of words.
#include "harness/words/facet_words.h"

#include "harness/base/text.h"

namespace ulpscope {

std::optional<int> NumberBetween(std::string_view text, int low, int high) {
  const auto value = WholeNumber<int>(text);
  return value && !text.starts_with('0') && *value >= low && *value <= high ? value : std::nullopt;
}

bool TakeSuffix(std::string_view* word, std::string_view suffix) {
  const bool found = word->ends_with(suffix);
  if (found) word->remove_suffix(suffix.size());
  return found;
}

std::string Alternatives(const std::vector<std::string>& words) { return "(" + Join(words, "|") + ")"; }

const FloatFormat* FindBits(std::string_view word) {
  const auto bits = word.starts_with('p') ? NumberBetween(word.substr(1), 2, 52) : std::nullopt;
  return bits ? &FormatOfBits(*bits) : nullptr;
}

const FloatFormat* FormatOrBits(std::string_view word) {
  const FloatFormat* format = FindFormat(word);
  return format != nullptr ? format : FindBits(word);
}

std::optional<FormatAndMode> ParseFormatAndMode(std::string_view word) {
  const size_t split = word.rfind('_');
  if (split == word.npos) return std::nullopt;
  const auto mode = ParseRounding(word.substr(split + 1));
  const FloatFormat* format = FormatOrBits(word.substr(0, split));
  if (!mode || format == nullptr) return std::nullopt;
  return FormatAndMode{.format = format, .rounding = *mode};
}

std::string WithMode(const FloatFormat& format, Rounding rounding) {
  return std::string(format.name) + "_" + std::string(Name(rounding));
}

std::string BriefMode(Rounding rounding) {
  return rounding == Rounding::kNearestEven ? "" : std::string(Name(rounding));
}

}  // namespace ulpscope
