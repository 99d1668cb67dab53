// Joins the classification of one value with the evidence from its auxiliary inputs.
#pragma once

#include <span>
#include <string>

#include "harness/model/classification.h"

namespace ulpscope {

/// The evidence of one auxiliary input about one value.
struct ProofInput {
  std::string name;  ///< of the auxiliary input
  const Classification* classification = nullptr;
  int bits = 0;  ///< its results use at most so many: a model that rounds them to fewer is ruled out
};

/// The result of Combine (combine.h), also if it is less informative than `base`.
Classification JoinInputs(const std::string& value, const Classification& base, DType observed, int bits,
                          std::span<const ProofInput> inputs);

/// Errors of an auxiliary input, or of unexplained results, that are no larger than float32's.
bool ErrsAsFloat32(const Classification& one);

}  // namespace ulpscope
