// std::regex, in one file: its templates take seconds to compile wherever they are used.
#include "harness/base/pattern.h"

#include <locale>
#include <regex>

namespace ulpscope {
namespace {

constexpr size_t kSearchedBytes =
    4096;  // std::regex recurses per character: a long text would exhaust the stack

/// In the classic locale: a character class must not mean another thing on another machine. Throws std::regex_error.
std::regex Compiled(const std::string& pattern) {
  std::regex compiled;
  compiled.imbue(std::locale::classic());
  compiled.assign(pattern, std::regex::ECMAScript);
  return compiled;
}

}  // namespace

bool IsPattern(const std::string& pattern) {
  try {
    Compiled(pattern);
    return true;
  } catch (const std::regex_error&) {
    return false;
  }
}

bool SearchPattern(const std::string& pattern, std::string_view text) {
  try {
    const std::string head(text.substr(0, kSearchedBytes));
    return std::regex_search(head, Compiled(pattern));
  } catch (const std::regex_error&) {
    return false;
  }
}

}  // namespace ulpscope
