// Attributes against the op table.
#include "backends/sdk/vocabulary.h"

#include <algorithm>

namespace ulpscope::sdk {

std::string UnknownAttribute(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    const OpRow* row = FindOp(step.op);
    for (const auto& [key, value] : step.attrs) {
      const auto is_it = [&key = key](const OpAttribute& attribute) { return attribute.key == key; };
      if (row != nullptr && !value.IsNull() && std::ranges::none_of(row->attributes, is_it))
        return "op '" + step.op + "' has no attribute '" + key + "'";
    }
    if (std::string inner = UnknownAttribute(step.steps); !inner.empty()) return inner;
  }
  return {};
}

}  // namespace ulpscope::sdk
