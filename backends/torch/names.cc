// Names read and made by steps.
#include "backends/torch/names.h"

namespace ulpscope::torch_backend {

void CollectNames(const std::vector<sdk::Step>& steps, Names& names) {
  for (const sdk::Step& step : steps) {
    const auto read = [&](const std::string& name) {
      if (!name.empty() && !names.made.contains(name)) names.read.insert(name);
    };
    for (const sdk::Operand& operand : step.of) read(operand.name);
    read(step.out);
    for (const auto& [key, value] : step.attrs.items()) {
      if (value.is_string()) read(value.get<std::string>());
      for (const sdk::Json& item : value.is_array() ? value : sdk::Json::array()) {
        if (item.is_string()) read(item.get<std::string>());
      }
    }
    CollectNames(step.steps, names);
    if (!step.as.empty() && step.op != "empty") names.made.insert(step.as);
  }
}

}  // namespace ulpscope::torch_backend
