// Projections of a set of models: facets, and one plain phrase.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "harness/model/oracle.h"

namespace ulpscope {

/// Fills facets, facets_in and cuts from `classification->models`; a facet that does not apply stays empty.
void ProjectFacets(const ValueShape& shape, Classification* classification);

/// The join of what survives, in words: "operand b rounded to bfloat16_rne, accumulated in float32 or wider,
/// rounded through bfloat16, stored float32"; "likely" in front when it rests on likelihood.
std::string LabelOf(const ValueShape& shape, DType observed, const Classification& classification);

/// The narrowest class that holds all accumulator words: "float32", "float32 or wider", "16 bits", ...
/// `longest`: the most terms of a sum that showed them.
std::string JoinAccumulators(const std::vector<std::string>& words,
                             int64_t longest = std::numeric_limits<int64_t>::max());

}  // namespace ulpscope
