// Tiny programs whose exact results every format holds: what an adapter is asked to compute before it is
// believed.
//
// One row for each op of the vocabulary. The inputs are small integers (or zeros and ones, for functions)
// chosen such that the exact result is a number of the dtype, in every floating dtype from float64 to
// float8_e5m2: no rounding, no order of accumulation and no precision can change a bit, so that any
// difference is a fault of the adapter. Several rows make one program, which costs a compiling framework one
// compilation.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/result.h"
#include "harness/model/case.h"

namespace ulpscope {

/// One op on the shared inputs; $r is the name of its result, $d the dtype.
struct OpProgram {
  std::string_view op;
  std::string_view inputs;  ///< names of the shared inputs it reads, separated by spaces
  std::string_view step;    ///< a YAML step without `as`
};

/// Every op whose value can be foreseen.
std::span<const OpProgram> OpPrograms();

/// One case that runs these rows in `dtype` and observes each result under "r_OP".
Result<Case> ProgramOf(std::span<const OpProgram* const> rows, DType dtype);

/// A case from its YAML body (tensors, program, observe), with $d for `dtype`.
Result<Case> SmallProgram(std::string_view body, DType dtype);

/// Name of the result of a row.
std::string ResultName(const OpProgram& row);

/// The inputs of `test_case`, and for each observed value the exact result in its declared dtype. Fails where
/// the exact oracle has none or where it is no number of the dtype.
struct ExactAnswer {
  std::map<std::string, TensorData> inputs, values;
};
Result<ExactAnswer> AnswerExactly(const Case& test_case);

/// "" if they are the same numbers of the same shape, whatever the dtype; else the first that differs.
std::string DifferenceOf(const TensorData& found, const TensorData& expected);

}  // namespace ulpscope
