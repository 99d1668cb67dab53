// The expected result of a step: float32 sums and one rounding of the result, from the operands that the backend itself
// had.
//
// A finding compares a deviating step with this result rather than with another backend's, which may round elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/model/oracle.h"

namespace ulpscope {

/// True if one of the surviving models is the expected computation.
bool IsAsWritten(const Classification& classification);

/// True if one way of the expected computation gives all of these elements: one order of its sums, numbers converted in
/// one way.
bool IsGivenAsWritten(const CaseOracle& written, const std::string& value, const TensorData& observed,
                      const std::vector<int64_t>& elements);

/// Puts into `result` the elements of `observed` that the expected computation does not give in any tried order.
/// `written`: an oracle for that one model.
void ShowAsWritten(const CaseOracle& written, const std::string& value, const TensorData& observed,
                   Classification* result);

}  // namespace ulpscope
