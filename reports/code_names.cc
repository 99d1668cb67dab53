// Finding the names in a sentence.
#include "reports/code_names.h"

#include <algorithm>

namespace ulpscope {

std::string ShowNames(std::string_view line, const ShowText& plain, const ShowText& code) {
  constexpr size_t kNone = std::string_view::npos;
  std::string shown;
  size_t told = 0;
  for (size_t begin = line.find('`'); begin != kNone; begin = line.find('`', begin)) {
    const size_t name = begin + 1, end = line.find_first_of("`\"", name);
    if (end == kNone || line[end] == '"') {
      begin = name;
    } else if (end == name || line.substr(end + 1, 1) == "`") {
      begin = std::min(line.find_first_not_of('`', end), line.size());
    } else {
      if (begin > told) shown += plain(line.substr(told, begin - told));
      shown += code(line.substr(name, end - name));
      begin = told = end + 1;
    }
  }
  if (told < line.size()) shown += plain(line.substr(told));
  return shown;
}

}  // namespace ulpscope
