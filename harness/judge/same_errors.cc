// Errors held against predicted ones.
#include "harness/judge/same_errors.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/judge/rule_numbers.h"

namespace ulpscope {

std::vector<double> Distinct(const std::vector<double>& values) {
  std::map<long long, double> known;
  for (const double value : values) known.emplace(std::llround(value * kFineDifference), value);
  std::vector<double> distinct;
  for (const auto& [key, value] : known) distinct.push_back(value);
  return distinct;
}

bool AreThose(const std::vector<double>& errors, const std::vector<double>& predicted, double free,
              double most_left) {
  // A few huge errors must not decide: most of the larger errors have to match.
  double before = 0, after = 0;
  for (size_t i = 0; i < errors.size(); ++i) {
    before += errors[i] * errors[i];
    after += std::pow(errors[i] - predicted[i], 2);
  }
  const double some = std::sqrt(before / static_cast<double>(std::max<size_t>(errors.size(), 1))) / 2;
  size_t asked = 0, near = 0;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (!(std::fabs(errors[i]) >= some)) continue;
    ++asked;
    near += std::fabs(errors[i] - predicted[i]) <= kNearPredicted * std::fabs(errors[i]) ? 1 : 0;
  }
  return asked >= kFewestPredicted && static_cast<double>(near) >= kMostlyNear * static_cast<double>(asked) &&
         after < most_left * before && free / 2 * std::log(before / after) > kNoCoincidence;
}

}  // namespace ulpscope
