// Error rendering.
#include "harness/base/result.h"

namespace ulpscope {

std::string Error::Text() const {
  std::string text;
  if (!pos.file.empty()) {
    text += pos.file;
    if (pos.line > 0) text += ":" + std::to_string(pos.line) + ":" + std::to_string(pos.column);
    text += ": ";
  }
  text += message;
  if (!found.empty()) text += "; found " + found;
  if (!expected.empty()) text += (found.empty() ? "; expected " : ", expected ") + expected;
  if (!hint.empty()) text += " (" + hint + ")";
  return text;
}

Error Problem(std::string message, std::string found, std::string expected, std::string hint) {
  return {.message = std::move(message),
          .found = std::move(found),
          .expected = std::move(expected),
          .hint = std::move(hint)};
}

}  // namespace ulpscope
