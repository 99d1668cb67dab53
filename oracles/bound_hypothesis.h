// One candidate model of a value, evaluated over the inputs of a case.
#pragma once

#include <cstddef>
#include <memory>

#include "harness/model/oracle.h"
#include "oracles/shared.h"
#include "oracles/value_bank.h"

namespace ulpscope {

std::unique_ptr<Hypothesis> MakeHypothesis(std::shared_ptr<Shared> shared,
                                           std::shared_ptr<const ValueBank> bank, size_t choice);

}  // namespace ulpscope
