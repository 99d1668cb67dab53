// Tiny programs whose exact results every format holds: the first test of an adapter's arithmetic.
//
// They are the examples of the op table (harness/words/ops.def). The inputs are small integers (or zeros and
// ones, for functions) chosen such that the exact result is a number of the dtype, in every floating dtype
// from float64 to float8_e5m2: no rounding, no order of accumulation and no precision can change a bit, so
// that any difference is a fault of the adapter. Several rows make one program, which costs a compiling
// framework one compilation.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/result.h"
#include "harness/model/case.h"
#include "harness/words/ops.h"

namespace ulpscope {

/// One case that runs the examples of these ops in `dtype` and observes each result under "r_OP".
Result<Case> ProgramOf(std::span<const OpRow* const> ops, DType dtype);

/// A case from its YAML body (tensors, program, observe), with $d for `dtype`.
Result<Case> SmallProgram(std::string_view body, DType dtype);

/// Name of the result of an op's example.
std::string NameOfResult(const OpRow& op);

/// The inputs of `test_case`, and for each observed value the exact result in its declared dtype. Fails where
/// the exact oracle has none or where it is no number of the dtype.
struct ExactAnswer {
  std::map<std::string, TensorData> inputs, values;
};
Result<ExactAnswer> AnswerExactly(const Case& test_case);

/// "" if they are the same numbers of the same shape, whatever the dtype; else the first that differs.
std::string DifferenceOf(const TensorData& found, const TensorData& expected);

}  // namespace ulpscope
