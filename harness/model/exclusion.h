// Sentences on exclusions: the values that a model gives where it is excluded.
#pragma once

#include <string>
#include <string_view>

#include "harness/model/classification.h"

namespace ulpscope {

/// "observed 2, this model gives exactly 3 (exact value 3)", with `subject` in the place of "this model".
std::string BoundsSentence(const Exclusion& exclusion, std::string_view subject);
/// "on the further input swamp: ..."; `why` itself where the input is the case's own data.
std::string OnFurtherInput(std::string_view input, const std::string& why);

}  // namespace ulpscope
