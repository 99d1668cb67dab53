// The names in a sentence, which stand in backticks, as a format shows code.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace ulpscope {

using ShowText = std::function<std::string(std::string_view)>;

/// A line with each name between two single backticks shown by `code`, without them, and all else by `plain`. A backtick that no
/// other one follows before a quotation mark is text: messages of others are quoted, and may hold one.
std::string ShowNames(std::string_view line, const ShowText& plain, const ShowText& code);

}  // namespace ulpscope
