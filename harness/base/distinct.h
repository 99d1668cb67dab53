// Distinct: texts in the order in which they came, each once; a report has tens of thousands of ids.
#pragma once

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace ulpscope {

class Distinct {
 public:
  /// Whether it is new.
  bool Add(const std::string& text) {
    const bool added = known_.insert(text).second;
    if (added) texts_.push_back(text);
    return added;
  }
  bool Has(const std::string& text) const { return known_.contains(text); }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::unordered_set<std::string> known_;
  std::vector<std::string> texts_;
};

}  // namespace ulpscope
