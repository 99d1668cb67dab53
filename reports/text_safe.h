// Text that others wrote (error messages, backend names, ids of foreign runs), made safe for the place it
// goes to.
//
// A framework's message may hold anything: escape sequences that move a terminal's cursor, bidirectional
// overrides that make a line read backwards, bytes that are no UTF-8, characters that XML 1.0 cannot carry
// even as references.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ulpscope {

/// One line for a terminal: no control character (C0, DEL, C1), no bidirectional control, valid UTF-8. A line
/// break becomes a space, anything else that is dropped becomes '?'.
std::string TerminalSafe(std::string_view text);

/// Valid UTF-8 of characters that XML 1.0 allows, without bidirectional controls; line breaks and tabs stay, the rest
/// becomes U+FFFD. Not escaped: that is the XML writer's work.
std::string XmlSafe(std::string_view text);

/// Valid UTF-8; broken bytes become U+FFFD. JSON escapes the rest.
std::string Utf8Safe(std::string_view text);

/// The number of columns a line takes, counting each code point as one.
size_t DisplayWidth(std::string_view text);

/// Wraps words to `columns`; the first line begins with `head`, the others with as many spaces.
std::string Wrap(std::string_view head, std::string_view text, size_t columns);

}  // namespace ulpscope
