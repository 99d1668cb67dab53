// Precision models by hand, for the tests of the judge and of the reports.
#pragma once

#include <string>
#include <vector>

#include "harness/model/classification.h"

namespace ulpscope::testing {

inline PrecisionModel Model(const std::string& acc, const std::string& mid,
                            const std::string& out = "float32_rne") {
  PrecisionModel model;
  model.acc = acc;
  model.mid = mid;
  model.out = out;
  return model;
}

inline void AddWord(std::vector<std::string>* words, const std::string& word) {
  for (const auto& known : *words) {
    if (known == word) return;
  }
  words->push_back(word);
}

}  // namespace ulpscope::testing
