// Widths: which bits the exact values of a program can use, followed from the inputs through its steps.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "harness/model/case.h"

namespace ulpscope {

/// Every element, and every exact partial result inside it, is a multiple of 2^low below 2^high in magnitude.
struct BitRange {
  int low = 0;
  int high = 0;
  int width() const { return high - low; }
};

/// The known properties of one name of a program; absent members are not known.
struct ValueFacts {
  std::optional<BitRange> bits = {};
  std::optional<Shape> shape = {};
  std::set<std::string> tensors = {};  ///< inputs that it depends on
  int64_t longest_sum = 0;             ///< terms of the longest sum before it; 0 = there is none
};

/// Facts of the tensors and of every value of the program. Reads at most 4096 elements of each tensor.
std::map<std::string, ValueFacts> FollowWidths(const Case& one);

}  // namespace ulpscope
