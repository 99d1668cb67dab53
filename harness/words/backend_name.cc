// Reading and spelling backend strings.
#include "harness/words/backend_name.h"

#include <algorithm>

#include "harness/base/text.h"

namespace ulpscope {
namespace {

constexpr std::string_view kModel = "model";

bool IsAsciiLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsPrintable(char c) { return c > ' ' && c < 0x7F; }

/// A name of a backend or a device.
bool IsWord(std::string_view text) {
  return !text.empty() && IsAsciiLetter(text[0]) && std::ranges::all_of(text, [](char c) {
    return IsAsciiLetter(c) || IsDigit(c) || c == '_' || c == '-';
  });
}

bool IsKnobName(std::string_view text) {
  return IsWord(text) && text.size() <= 64 && text.find('-') == text.npos;
}

/// Printable, with parentheses that close and do not nest.
bool IsValue(std::string_view text) {
  int open = 0;
  for (const char c : text) {
    if (!IsPrintable(c)) return false;
    open += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (open < 0 || open > 1) return false;
  }
  return open == 0 && !text.empty();
}

tl::unexpected<Error> Wrong(std::string_view text, const std::string& what, std::string_view found) {
  return Fail(Problem("backend '" + std::string(text) + "' cannot be read: " + what,
                      "'" + std::string(found) + "'", "NAME[@DEVICE][:knob=value,...]"));
}

}  // namespace

Result<BackendSpec> BackendSpec::Parse(std::string_view text, std::string_view device) {
  BackendSpec spec;
  spec.name = NameOf(text);
  spec.device = device;
  if (!IsWord(spec.name)) return Wrong(text, "this is no name", spec.name);
  std::string_view rest = text.substr(spec.name.size());
  if (rest.starts_with('@')) {
    rest.remove_prefix(1);
    // A device may carry an index: cuda:0. A knob never begins with a digit, so that the colon is
    // unambiguous.
    const size_t kind = std::min(rest.find(':'), rest.size());
    size_t end = kind;
    if (kind + 1 < rest.size() && IsDigit(rest[kind + 1]))
      end = std::min(rest.find(':', kind + 1), rest.size());
    spec.device = rest.substr(0, end);
    const std::string_view index = rest.substr(std::min(kind + 1, end), end - std::min(kind + 1, end));
    if (!IsWord(rest.substr(0, kind)) || index.size() > 3 || !std::ranges::all_of(index, IsDigit))
      return Wrong(text, "this is no device", spec.device);
    rest.remove_prefix(end);
  }
  if (rest.empty()) return spec;
  rest.remove_prefix(1);  // the colon
  while (true) {
    const bool is_model = rest.starts_with("model=");
    const auto parts = SplitOutsideParentheses(rest, ',');
    const std::string part = is_model ? std::string(rest) : parts.empty() ? "" : parts.front();
    const size_t equals = std::min(part.find('='), part.size());
    const std::string knob = part.substr(0, equals);
    const std::string value = part.substr(std::min(equals + 1, part.size()));
    const bool readable =
        is_model ? std::ranges::all_of(value, IsPrintable) && !value.empty() : IsValue(value);
    if (!IsKnobName(knob) || !readable) return Wrong(text, "expected knob=value", part);
    if (!spec.knobs.emplace(knob, value).second) return Wrong(text, "a knob is set twice", knob);
    if (part.size() == rest.size()) return spec;
    rest.remove_prefix(part.size() + 1);
  }
}

std::string_view BackendSpec::Pattern() {
  // VALUE: anything printable but commas, unless inside parentheses.
#define KNOB "[A-Za-z][A-Za-z0-9_]{0,63}="
#define VALUE "([!-'*+.-~-]|[(][!-'*-~]*[)])+"
  return "^[A-Za-z][A-Za-z0-9_-]*(@[A-Za-z][A-Za-z0-9_-]*(:[0-9]{1,3})?)?"
         "(:(" KNOB VALUE ",)*(model=[!-~]+|" KNOB VALUE "))?$";
#undef KNOB
#undef VALUE
}

std::string BackendSpec::Text() const {
  std::string text = name;
  if (device != "cpu") text += "@" + device;
  char separator = ':';
  const auto add = [&](const std::string& knob, const std::string& value) {
    text += separator + knob + "=" + value;
    separator = ',';
  };
  for (const auto& [knob, value] : knobs) {
    if (knob != kModel) add(knob, value);
  }
  if (const auto model = knobs.find(std::string(kModel)); model != knobs.end())
    add(model->first, model->second);
  return text;
}

std::string CanonicalBackend(std::string_view text) {
  const auto spec = BackendSpec::Parse(text);
  return spec ? spec->Text() : std::string(text);
}

}  // namespace ulpscope
