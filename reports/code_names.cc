// Finding the names in a sentence.
#include "reports/code_names.h"

#include <algorithm>

namespace ulpscope {

std::string ShowNames(std::string_view sentence, const ShowText& plain, const ShowText& code) {
  constexpr size_t kNone = std::string_view::npos;
  std::string shown;
  size_t told = 0;
  for (size_t begin = sentence.find('`'); begin != kNone; begin = sentence.find('`', begin)) {
    const size_t name = begin + 1, end = sentence.find_first_of("`\"", name);
    if (end == kNone || sentence[end] == '"') {
      begin = name;
    } else if (end == name || sentence.substr(end + 1, 1) == "`") {
      begin = std::min(sentence.find_first_not_of('`', end), sentence.size());
    } else {
      if (begin > told) shown += plain(sentence.substr(told, begin - told));
      shown += code(sentence.substr(name, end - name));
      begin = told = end + 1;
    }
  }
  if (told < sentence.size()) shown += plain(sentence.substr(told));
  return shown;
}

}  // namespace ulpscope
