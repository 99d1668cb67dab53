// Cuts: the roundings that backends may apply to the intermediates of a value, all of them together.
//
// Each may stay as it is, be stored as declared or be rounded in another way. A few are tried one by one; of
// many, those that behave alike (eight temporaries of one loop) share one choice.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "oracles/path.h"

namespace ulpscope {

/// Formats that a value is rounded to one after another, to nearest; empty: it is not rounded.
using FormatChain = std::vector<const FloatFormat*>;
/// By cut point.
using CutChoice = std::map<int, FormatChain>;

std::vector<CutChoice> EnumerateCuts(const Plan& plan, const ValuePath& path);
/// At most so many: they double with each group, and to list them all to count them would cost more than to judge with them.
double CountCuts(const Plan& plan, const ValuePath& path);
/// Everything stored as declared, sums rounded through `mid` first, as in a uniform backend.
CutChoice UniformCuts(const Plan& plan, const ValuePath& path, const RoundSpec& mid);
/// The 16-bit format of a composite op's steps: the result's own if it is narrow, else bfloat16.
const FloatFormat& NarrowOf(const Plan& plan, const ValuePath& path);

}  // namespace ulpscope
