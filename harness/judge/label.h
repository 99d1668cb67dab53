// Projections of a set of models: facets, and one plain phrase.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/oracle.h"

namespace ulpscope {

/// Fills facets, facets_in and cuts from `classification->models`; a facet that does not apply stays empty.
void ProjectFacets(const ValueShape& shape, Classification* classification);

/// The owner of the errors in `max_ulp`: one value's rounding, alone or in a program, or several steps computed as one.
enum class ErrorsOf { kThisStep, kStepOfProgram, kSeveralSteps };

/// Sets `label`, the join of the surviving models, in words ("operand b rounded to bfloat16_rne, accumulated in float32
/// or wider, rounded through bfloat16, stored float32"; "likely" in front if it rests on likelihood), and `labelled`.
/// If the errors are those of several steps, the output rounding of the last one rounds once: by half a unit at most.
void SetLabel(const ValueShape& shape, DType observed, ErrorsOf errors, Classification* classification);

/// Describes the steps inside an op, if each is known to be rounded to one format or not at all.
struct InsideSteps {
  std::string text;  ///< "the exp and the total inside rounded to bfloat16"; empty without one
  const FloatFormat* coarsest = nullptr;  ///< of their formats
  bool all = false;                       ///< all that the op has names for, to one format
};
InsideSteps DescribeInside(const std::string& value, const Classification& classification);

/// True if every surviving model sums in a format of 16 bits.
bool SumsNarrow(const Classification& judged);

/// A step inside the op of `value`, for readers: "exp in denominator" for the cut "p.exp_in_denominator".
std::string StepInside(std::string_view cut, std::string_view value);

/// The narrowest class of all accumulators: "float32", "float32 or wider", "16 bits", ... `longest`: the longest sum.
std::string JoinAccumulators(const std::vector<AccSpec>& accs,
                             int64_t longest = std::numeric_limits<int64_t>::max());
/// The class of accumulators that have nothing in common.
std::string_view OpenFormat();

}  // namespace ulpscope
