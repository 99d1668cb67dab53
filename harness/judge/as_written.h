// The expected result of a step: float32 sums and one rounding of the result, from the backend's own operands. A
// finding compares a deviating step with this result rather than with another backend's, which may round elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/model/oracle.h"

namespace ulpscope {

/// True if one of the surviving models is the expected computation.
bool IsAsWritten(const Classification& classification);

/// True if one way of the expected computation, with one order of sums and one conversion of numbers, gives them all.
bool IsGivenAsWritten(const CaseOracle& written, const std::string& value, const TensorData& observed,
                      const std::vector<int64_t>& elements);

/// Puts the elements of `observed` that `written`, an oracle for the expected computation, never gives into `result`.
void ShowAsWritten(const CaseOracle& written, const std::string& value, const TensorData& observed,
                   Classification* result);

}  // namespace ulpscope
