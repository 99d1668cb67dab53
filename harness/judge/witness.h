// Witness: the element that shows a finding, with the numbers of both sides.
#pragma once

#include <string>

#include "harness/judge/side.h"

namespace ulpscope {

/// True if all members of a side have the same there.
bool IsShared(const Side& side, const std::string& value, int64_t index);
/// " on jax" if not all of the side have the shown element.
std::string OnWhom(const Side& side, const std::string& value, int64_t index);
/// ": `product[0,3]` is 2.5 on jax and 2.4375 on torch-eager".
std::string Witness(const Side& first, const Side& second, const std::string& value);

}  // namespace ulpscope
