// The evidence against a model, in words.
#include "harness/model/exclusion.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/num/float_format.h"

namespace ulpscope {

std::string BoundsSentence(const Exclusion& exclusion, std::string_view subject) {
  const std::string low = FormatNumber(exclusion.low), high = FormatNumber(exclusion.high);
  const std::string bounds = std::isnan(exclusion.low) ? "a NaN or an infinity"
                             : exclusion.low == exclusion.high
                                 ? "exactly " + low
                                 : "between " + low + " and " + high + " in any order";
  return fmt::format("observed {}, {} gives {} (exact value {})", FormatNumber(exclusion.observed), subject,
                     bounds, FormatNumber(exclusion.reference));
}

std::string OnFurtherInput(std::string_view input, const std::string& why) {
  return input.empty() ? why : fmt::format("on the auxiliary input {}: {}", input, why);
}

}  // namespace ulpscope
