// The skeleton of a new case file: small, valid, and commented where a choice is made.
#pragma once

#include <string>
#include <string_view>

namespace ulpscope {

/// The text of a case file with one case `name` (letters, digits, _ - . +). It loads without changes.
std::string NewCaseTemplate(std::string_view name);

}  // namespace ulpscope
