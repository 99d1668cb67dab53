// Text of Python programs.
#include "harness/repro/python_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <variant>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/num/dtype.h"
#include "harness/num/float_format.h"

namespace ulpscope {

std::string PythonString(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' || c == '\r' ? ' ' : c;
  }
  return quoted + "\"";
}

std::string PythonLongString(const std::string& text) {
  constexpr size_t kLine = 100;
  if (text.size() <= kLine) return "\"" + text + "\"";
  std::string lines = "(";
  for (size_t begin = 0; begin < text.size(); begin += kLine)
    lines += "\n        \"" + text.substr(begin, kLine) + "\"";
  return lines + ")";
}

std::string PythonFloat(double value) {
  if (!std::isfinite(value)) return fmt::format("float(\"{}\")", ShortestDecimal(value));
  std::string text = ShortestDecimal(value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string PythonLiteral(const Attr& attr, std::string_view module) {
  struct Visitor {
    std::string_view module;
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool value) const { return value ? "True" : "False"; }
    std::string operator()(int64_t value) const { return std::to_string(value); }
    std::string operator()(double value) const { return PythonFloat(value); }
    std::string operator()(const std::string& text) const {
      if (ParseDType(text))
        return fmt::format("{}.{}", module, text == "bool" && module == "jnp" ? "bool_" : text);
      if (text == "inf" || text == "-inf" || text == "nan") return fmt::format("float(\"{}\")", text);
      return PythonString(text);
    }
    std::string operator()(const Attr::List& list) const {
      return "[" + Join(Mapped(list, [&](const Attr& item) { return PythonLiteral(item, module); }), ", ") +
             "]";
    }
    std::string operator()(const Attr::Map&) const { return "None"; }
  };
  return std::visit(Visitor{module}, attr.value);
}

std::string PythonVariable(std::string_view name) {
  std::string text = "v_";
  for (const char c : name.substr(0, name.find('.')))
    text += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) ? c : '_';
  return name.ends_with(".grad") ? text + ".grad" : text;
}

std::string PythonIndented(const std::string& text) {
  std::string indented;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (!line.empty() || !indented.ends_with("\n\n")) indented += (line.empty() ? "" : "    ") + line + "\n";
    begin = end + 1;
  }
  while (indented.ends_with('\n')) indented.pop_back();
  return indented;
}

std::string Base64(const std::vector<std::byte>& bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j) group = group << 8 | (j < count ? static_cast<uint32_t>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) text += j <= count ? kLetters[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

}  // namespace ulpscope
