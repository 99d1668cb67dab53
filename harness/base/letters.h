// ASCII letters.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace ulpscope {

/// ASCII letters in lower case, all else as it is.
inline std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return lower;
}

}  // namespace ulpscope
