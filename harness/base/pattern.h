// Regular expressions of case files: the one place that compiles and searches them.
#pragma once

#include <string>
#include <string_view>

namespace ulpscope {

/// Whether `pattern` is an ECMAScript regular expression.
bool IsPattern(const std::string& pattern);

/// Whether `pattern` matches somewhere in the first 4096 bytes of `text`, whatever the locale; false for what is no pattern.
bool SearchPattern(const std::string& pattern, std::string_view text);

}  // namespace ulpscope
