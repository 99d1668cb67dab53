// Lint: cases that load, but cannot decide what they are meant to decide.
//
// A case whose data are too poor passes whatever the backend computes in: sums of small integers are exact in
// bfloat16 and in float64 alike, and a sum of one term does not test the accumulator. Lint follows how wide
// the exact values of a program can be (from the highest to the lowest bit in use, over the elements that the
// generator gives) and compares that with the words that contract and expect name. Parts that it cannot
// follow get no warning: the absence of a warning is no proof.
#pragma once

#include <vector>

#include "harness/base/result.h"
#include "harness/model/case.h"

namespace ulpscope {

/// Warnings, in program order, each with the place of the tensor, step or case that it is about.
std::vector<Error> Lint(const Case& one);

}  // namespace ulpscope
