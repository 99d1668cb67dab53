// A contract on a value at the end of many steps, where the program as one has too many models to be searched.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "harness/model/case.h"
#include "harness/model/classification.h"

namespace ulpscope {

/// What stands for the classification of `value` in a contract that demands `demand` of it: that of the step, among those
/// that it rests on and its own, which bears the demand out least (one that violates it, else one that nothing explains, else
/// one that leaves it open, else its own). An accumulator, a product or an operand that is demanded of a value is demanded of
/// each step on its path. `steps`: of the opened program, by value, each judged from the operands that the backend computed for
/// it. None where a step that gives floating-point numbers was not judged, or not by the whole bank, and none violates; and
/// where the demand names an operand or an intermediate of the whole or its store (in.NAME, cuts.NAME, out).
std::optional<Classification> StandInFromSteps(const Case& opened, const std::string& value,
                                               const ValueDemand& demand,
                                               const std::map<std::string, Classification>& steps);

}  // namespace ulpscope
