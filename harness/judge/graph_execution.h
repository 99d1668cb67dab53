// Graph against execution: a stage of the trace rounds a value to a narrow format and back, the numbers prove
// that nothing did. Between that stage and the next one, or the execution, the rounding vanished.
#pragma once

#include <optional>
#include <string>

#include "harness/model/run_report.h"

namespace ulpscope {

struct LostRounding {
  std::string value;   ///< the first observed value of that size in program order
  std::string format;  ///< the narrow format, a dtype name
  std::string from;    ///< the last stage that shows the pair of casts
  std::string to;      ///< the next stage of the trace, or "execution"
  std::string basis;   ///< "proved" when every proved model keeps more, "likely" when only the likely ones do
};

/// Looks for casts wide -> narrow and narrow -> wide of one size in one stage, where every proved model of
/// every observed value of that size (the last one of the program among them) rounds to nothing so narrow. A
/// dead pair off the path of what is observed would be taken for a lost one; a rounding without an explicit
/// pair is not found.
std::optional<LostRounding> FindLostRounding(const CaseResult& result);

}  // namespace ulpscope
