// Values of a case as the text of a Python program.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/words/program.h"

namespace ulpscope {

/// A string literal on one line: line ends become blanks.
std::string PythonString(std::string_view text);

/// A string literal that spans lines where it is long. `text` needs no escapes.
std::string PythonLongString(const std::string& text);

/// A float that has exactly this value.
std::string PythonFloat(double value);

/// A literal; dtypes as attributes of `module`, "torch" or "jnp".
std::string PythonLiteral(const Attr& attr, std::string_view module);

/// The variable that holds a value of the case, apart from every name that a script has otherwise; of NAME.grad its
/// gradient.
std::string PythonVariable(std::string_view name);

/// Lines four columns further in, as the body of a function: without empty lines at the end, and never two in a row.
std::string PythonIndented(const std::string& text);

std::string Base64(const std::vector<std::byte>& bytes);

}  // namespace ulpscope
