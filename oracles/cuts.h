// Cuts: what backends may do with the intermediates on the way to a value, all of them together.
//
// Each may stay as it is, be stored as declared or be rounded otherwise on the way. A few are tried one by one; of many, those
// that behave alike (eight temporaries of one loop) share one choice.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "oracles/path.h"

namespace ulpscope {

/// By cut point, the formats applied in order; empty: unrounded.
using CutChoice = std::map<int, std::vector<std::string>>;

std::vector<CutChoice> EnumerateCuts(const Plan& plan, const ValuePath& path);
/// At most so many: they double with each group, and to list them all to count them would cost more than to judge with them.
double CountCuts(const Plan& plan, const ValuePath& path);
/// Everything stored as declared, sums rounded through `word` first: what a uniform backend does.
CutChoice UniformCuts(const Plan& plan, const ValuePath& path, const std::string& word);
/// The 16-bit format of a composite op's steps: the result's own where it is narrow, else bfloat16.
std::string NarrowOf(const Plan& plan, const ValuePath& path);

}  // namespace ulpscope
