// Names that a case file may use besides the words of its language.
#pragma once

#include <string>
#include <vector>

namespace ulpscope {

/// Names that cases may use and that are not part of the language.
struct Vocabulary {
  std::vector<std::string> backends;  ///< known backend names, for the keys of `expect`; empty = not checked
};

}  // namespace ulpscope
