// Whether results err as something predicts, number by number: evidence that needs no bound and no order.
#pragma once

#include <vector>

namespace ulpscope {

/// The values that differ by more than rounding: equal numbers are evidence only once.
std::vector<double> Distinct(const std::vector<double>& values);

/// True if `errors` are `predicted` and little else: at most `most_left` of their squares is left, and so small a
/// remainder would be an accident if they were independent. `free`: how many of the numbers are independent evidence.
bool AreThose(const std::vector<double>& errors, const std::vector<double>& predicted, double free,
              double most_left = 0.3);

}  // namespace ulpscope
