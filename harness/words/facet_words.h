// The parts that the words of several facets share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/num/float_format.h"

namespace ulpscope {

constexpr std::string_view kBitsPattern = "p([2-9]|[1-4][0-9]|5[0-2])";

bool TakeSuffix(std::string_view* word, std::string_view suffix);
/// A number without leading zeros between `low` and `high`.
std::optional<int> NumberBetween(std::string_view text, int low, int high);
/// "(a|b)".
std::string Alternatives(const std::vector<std::string>& words);
/// A format by the bits that it keeps of float32: p12.
const FloatFormat* FindBits(std::string_view word);
/// A format by its name, or by its bits.
const FloatFormat* FormatOrBits(std::string_view word);
struct FormatAndMode {
  const FloatFormat* format = nullptr;
  Rounding rounding = Rounding::kNearestEven;
};
/// "bfloat16_rne".
std::optional<FormatAndMode> ParseFormatAndMode(std::string_view word);
/// "bfloat16_rz".
std::string WithMode(const FloatFormat& format, Rounding rounding);
/// Which words there are of a mode, as a cell shows them: nothing for the usual one.
std::string BriefMode(Rounding rounding);

}  // namespace ulpscope
