// Side: one side of a divergence, and how its names and values are put into a sentence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/judge/participant.h"
#include "harness/num/tensor_data.h"

namespace ulpscope {

/// One side of a divergence: its backends and their representative.
struct Side {
  std::vector<std::string> names;
  Participant speaker;                          ///< the member whose classes and elements are reported
  std::vector<const Observation*> all = {};     ///< of every member; null if a run has none
  std::vector<const CaseResult*> results = {};  ///< of every one
};

/// Picks the verb that fits the number of names.
std::string_view Verb(const Side& side, std::string_view singular, std::string_view plural);
/// "a", "a and b", "a, b and c".
std::string JoinNames(const std::vector<std::string>& names);
/// "`s`, `t` and `u`": names of values.
std::string JoinCode(const std::vector<std::string>& names);
/// A larger number of ulps belongs to an exact value near zero: the absolute distance is more informative.
inline constexpr double kMostTellingUlp = 1e6;
/// A distance in units in the last place, with the digits that a person reads: 0.73, 4.9, 282, 1.57e+07.
std::string Ulps(double distance);
/// "[0,3]".
std::string Bracketed(const std::vector<int64_t>& coordinates);
/// The first line of external text, truncated to `limit` bytes at a character; control characters become spaces.
std::string FirstLine(std::string_view text, size_t limit);

/// The representative's result for a value that it has.
const ValueResult& ValueOf(const Side& side, const std::string& value);
/// The representative's tensor; null if there is none.
const TensorData* TensorOf(const Side& side, const std::string& value);

}  // namespace ulpscope
