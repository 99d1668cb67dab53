// The places where infinities and NaNs of a run begin, as findings: one finding if several backends share it.
#pragma once

#include <string>
#include <vector>

#include "harness/model/run_report.h"

namespace ulpscope {

struct SharedBirth {
  std::string case_id;
  const NonFiniteBirth* birth = nullptr;
  std::vector<std::string> backends;
  bool everywhere = false;  ///< on every backend that computed the case
  bool diverges = false;    ///< a divergence of special values is of one of its values, and names it
};
/// In the order of the results. `report` must outlive the return value.
std::vector<SharedBirth> SharedBirthsOf(const RunReport& report);

/// "0 / 0", "exp(12)"; "" if the operands are not known.
std::string OperandsText(const NonFiniteBirth& birth);
/// "NaN of y begins in step share (div, 0 / 0 at [3,1]) on a and b; there is no exact value. Not finite: 1 of 8 elements of share, 4 of 8
/// of y." `where`: " on a and b", or empty.
std::string BirthSentence(const NonFiniteBirth& birth, const std::string& where);
/// With " on all 3 backends", and the source that the step was captured from.
std::string BirthSentence(const RunReport& report, const SharedBirth& shared);

}  // namespace ulpscope
