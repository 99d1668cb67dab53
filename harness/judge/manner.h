// Manner: the computation of one value, as a part of a sentence.
#pragma once

#include <string>

#include "harness/model/case.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// "with y rounded to bfloat16".
struct Manner {
  std::string text;
  bool names_inside = false;  ///< the text covers steps inside the op
};

/// Whether the description includes sums that are known to be wide.
enum class WideSums { kTold, kLeftOut };

Manner DescribeManner(const Case& test_case, const std::string& value, const ValueResult& result,
                      WideSums wide_sums);

/// A remark on a value that nothing explains; its distance from the exact values if there is no remark.
std::string ShowsOrHowFar(const Classification& classification);
std::string InParentheses(const std::string& text);

}  // namespace ulpscope
