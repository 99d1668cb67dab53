// Whether results err as something predicts, number by number: evidence that needs no bound and no order.
#pragma once

#include <vector>

namespace ulpscope {

/// Those that differ by more than rounding: equal numbers say the same thing once.
std::vector<double> Distinct(const std::vector<double>& values);

/// Whether `errors` are `predicted` and little else: at most `most_left` of their squares is left, and were they independent, so little
/// would be an accident. `free`: how many of the numbers say something of their own.
bool AreThose(const std::vector<double>& errors, const std::vector<double>& predicted, double free,
              double most_left = 0.3);

}  // namespace ulpscope
