// A contract on a value after many steps, if the program as a whole has too many models to search.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "harness/model/case.h"
#include "harness/model/classification.h"

namespace ulpscope {

/// The classification that represents `value` in a contract with `demand` on it: that of the step, among those before
/// it and its own, that meets the demand least (one that violates it, else one that nothing explains, else one that
/// leaves it open, else its own). A demand on an accumulator, a product or an operand of a value applies to each step
/// on its path. `steps`: of the instrumented program, by value, each judged on the operands that the backend computed
/// for it. None if a floating-point step was not judged, or not against all candidate models, and none violates; and
/// none if the demand names an operand or an intermediate of the whole, or its output (in.NAME, cuts.NAME, out).
std::optional<Classification> StandInFromSteps(const Case& opened, const std::string& value,
                                               const ValueDemand& demand,
                                               const std::map<std::string, Classification>& steps);

}  // namespace ulpscope
