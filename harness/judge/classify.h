// The classifier: which precision models can have produced an observed value, with the element that excludes
// each rival.
//
// Two stages, never mixed. Hard evidence: a model is out when an observed element lies outside everything it
// can produce in any accumulation order (models_proved is what is left; contracts are judged on it alone).
// Likelihood: among those, models whose simulated accumulation orders explain the bits far worse than the
// best one are set aside (models is what is left; a label that rests on it says "likely"). The answer is the
// set, never a guess.
#pragma once

#include <map>
#include <string>

#include "harness/judge/classify_options.h"
#include "harness/model/oracle.h"

namespace ulpscope {

/// Classifies one value.
Classification ClassifyValue(const CaseOracle& oracle, const std::string& value, const TensorData& observed,
                             const ClassifyOptions& options = {});

/// Classifies every observed value.
std::map<std::string, Classification> ClassifyValues(const CaseOracle& oracle,
                                                     const std::map<std::string, TensorData>& observed,
                                                     const ClassifyOptions& options = {});

}  // namespace ulpscope
