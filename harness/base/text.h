// Small text helpers shared by every layer: nearest-name suggestions, joins and what parts them.
#pragma once

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ulpscope {

/// ASCII alone, whatever the locale.
inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// The number that all of `text` is, as std::from_chars reads it; nothing where it is none or does not fit.
template <class Number>
std::optional<Number> WholeNumber(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

/// The candidate nearest to `word` by edit distance, or "" when none is within a third of its length (at
/// least 2).
std::string NearestName(std::string_view word, std::span<const std::string> candidates);

/// "did you mean 'x'?" or "": what other languages call so, else the nearest name.
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

std::string Join(std::span<const std::string> parts, std::string_view separator);
std::string Join(std::span<const int64_t> numbers, std::string_view separator);
/// "numpy 2.2.6, torch 2.13.0": versions by their packages.
std::string Join(const std::map<std::string, std::string>& versions);

/// "1 case", "2 cases".
std::string Counted(int64_t count, std::string_view noun);

/// The text before the first end of a line.
inline std::string_view FirstLineOf(std::string_view text) { return text.substr(0, text.find('\n')); }
/// A name in a sentence, so that nobody takes it for a word of it: "`result`".
inline std::string Code(std::string_view name) { return "`" + std::string(name) + "`"; }
/// One word of a POSIX shell command line.
std::string ShellQuote(std::string_view word);
/// The lines of a text, without their ends.
std::vector<std::string> LinesOf(std::string_view text);

/// Splits at `separator`, but never inside (), so that `blockfma(8,24,rz)` stays whole.
std::vector<std::string> SplitOutsideParentheses(std::string_view text, char separator);

}  // namespace ulpscope
