// Infinities and NaNs: where in a program they begin.
//
// A NaN at the end of a program does not show its cause, so each step is checked on the operands that the same backend
// computed for it. An infinity begins in the first step that gives one although the exact result on these operands is
// finite: an infinity in exact arithmetic too (1 / 0, a mask of -inf) is no loss. A NaN begins in the first step that
// gives one from operands without NaNs, whether the exact result is a number or does not exist (0 / 0, inf - inf). It
// is reported even if every backend gives it: the result is lost all the same.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/open_piece.h"
#include "harness/model/oracle.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// Elements of one value that are infinite or NaN, and one of them.
struct NonFinite {
  std::string value;
  std::string op = {};               ///< of the step that gives it, if its operands were looked at
  int64_t count = 0, elements = 0;   ///< infinite or NaN; all
  std::vector<int64_t> first = {};   ///< coordinates
  double observed = 0;               ///< there
  std::optional<double> exact = {};  ///< there; nothing: it is no number
  DType dtype = DType::kFloat32;
  std::vector<double> operands = {};  ///< of an elementwise step, at that element
};

/// A floating-point value has an element that is infinite or NaN.
bool HasNonFinite(const TensorData& data);

/// Reports non-finite elements of a value that are finite under the whole oracle; nothing if there are none.
std::optional<NonFinite> FindNonFinite(const CaseOracle& oracle, const std::string& value,
                                       const TensorData& observed);

/// For a program each of whose steps gives one new value (harness/casefile/open.h): the first step before `value` in
/// which an infinity begins, and the first in which a NaN does, in program order; each with its first such element, on
/// the step's own operands. `values`: the results of all steps on one backend.
std::vector<NonFinite> FindBirths(const Case& opened, const std::map<std::string, TensorData>& inputs,
                                  const std::map<std::string, TensorData>& values, const std::string& value,
                                  const OpenPiece& open);

/// Elements that are not finite of `step` and of each later step that rests on it and has any, in program order.
std::vector<NonFiniteBirth::Spread> SpreadFrom(const Case& opened,
                                               const std::map<std::string, TensorData>& values,
                                               const std::string& step);

/// "y[1,2] is inf, exact 90000 of 300 and 300, beyond 65504, the largest float16 (2 of 32 elements are not finite)".
std::string DescribeNonFinite(const NonFinite& found);

}  // namespace ulpscope
