// One strict UTF-8 decoder, three sinks.
#include "reports/text_safe.h"

#include <cstdint>

namespace ulpscope {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
  enum class Validity { kValid, kBroken } validity = Validity::kBroken;
};

/// The first character of `text`, which is not empty. Overlong forms, surrogates and values above U+10FFFF
/// are broken.
Character Decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {.code = first, .bytes = 1, .validity = Character::Validity::kValid};
  const size_t length = first >= 0xf0 && first < 0xf5   ? 4
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xc2 && first < 0xe0 ? 2
                                                        : 0;
  if (length == 0 || text.size() < length) return {};
  uint32_t code = first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = (code << 6) | (byte(i) & 0x3fu);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  if (overlong || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {.code = code, .bytes = length, .validity = Character::Validity::kValid};
}

bool IsBidirectionalControl(uint32_t code) {
  return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0x200e ||
         code == 0x200f || code == 0x061c;
}

bool IsTerminalSafe(uint32_t code) {
  return code >= 0x20 && code != 0x7f && !(code >= 0x80 && code < 0xa0) && !IsBidirectionalControl(code) &&
         code != 0x2028 && code != 0x2029;
}

bool IsXmlSafe(uint32_t code) {
  if (code < 0x20) return code == '\n' || code == '\t';
  return !(code >= 0x7f && code < 0xa0) && code != 0xfffe && code != 0xffff && !IsBidirectionalControl(code);
}

template <class Keep>
std::string Filter(std::string_view text, std::string_view replacement, Keep keep) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const Character character = Decode(text);
    if (character.validity == Character::Validity::kValid && keep(character.code)) {
      safe += text.substr(0, character.bytes);
    } else if (character.validity == Character::Validity::kValid &&
               (character.code == '\n' || character.code == '\r' || character.code == '\t')) {
      safe += ' ';
    } else {
      safe += replacement;
    }
    text.remove_prefix(character.bytes);
  }
  return safe;
}

}  // namespace

std::string TerminalSafe(std::string_view text) { return Filter(text, "?", IsTerminalSafe); }

std::string XmlSafe(std::string_view text) { return Filter(text, kReplacement, IsXmlSafe); }

std::string Utf8Safe(std::string_view text) {
  return Filter(text, kReplacement, [](uint32_t) { return true; });
}

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return width;
}

std::string Wrap(std::string_view head, std::string_view text, size_t columns) {
  std::string wrapped;
  std::string line(head);
  const std::string indent(DisplayWidth(head), ' ');
  bool empty = true;  // nothing but the head or the indentation so far
  std::string_view rest = text;
  while (!rest.empty()) {
    size_t spaces = 0;
    while (spaces < rest.size() && rest[spaces] == ' ') ++spaces;
    const size_t end = std::min(rest.find(' ', spaces), rest.size());
    const std::string_view word = rest.substr(spaces, end - spaces);
    const std::string_view gap = empty ? std::string_view() : rest.substr(0, spaces);
    rest.remove_prefix(end);
    if (word.empty()) break;
    if (!empty && DisplayWidth(line) + gap.size() + DisplayWidth(word) > columns) {
      wrapped += line + "\n";
      line = indent;
      line += word;
    } else {
      line += gap;
      line += word;
    }
    empty = false;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return wrapped + line + "\n";
}

}  // namespace ulpscope
