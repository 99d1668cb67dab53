// The classification of one value joined with what its auxiliary inputs show.
#pragma once

#include <span>
#include <string>

#include "harness/model/classification.h"

namespace ulpscope {

/// What one companion showed of one value.
struct ProofInput {
  std::string name;  ///< of the companion
  const Classification* classification = nullptr;
  int bits = 0;  ///< that its results use at most: what rounds them to fewer did not give them
};

/// What Combine (combine.h) returns, also where less is known by it than by `base`.
Classification JoinInputs(const std::string& value, const Classification& base, DType observed, int bits,
                          std::span<const ProofInput> inputs);

/// Errors of a further input, or of results that nothing explains, that are no larger than float32's.
bool ErrsAsFloat32(const Classification& one);

}  // namespace ulpscope
