// reports/html/page.css and page.js, as the program carries them.
#pragma once

#include <string_view>

namespace ulpscope {

extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace ulpscope
