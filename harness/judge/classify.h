// The classifier: which precision models can have produced an observed value, with the element that excludes
// each rival.
//
// Two stages, never mixed. Hard evidence: a model is out when an observed element lies outside everything it
// can produce in any accumulation order (models_proved is what is left; contracts are judged on it alone).
// Likelihood: among those, models whose simulated accumulation orders explain the bits far worse than the
// best one are set aside (models is what is left; a label that rests on it says "likely"). The answer is the
// set, never a guess.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/judge/classify_options.h"
#include "harness/model/oracle.h"

namespace ulpscope {

/// Classifies one value.
Classification ClassifyValue(const CaseOracle& oracle, const std::string& value, const TensorData& observed,
                             const ClassifyOptions& options = {});

/// Some elements of a value with their exact results, which every backend shares.
struct ExactElements {
  std::vector<int64_t> elements;
  std::vector<Reference> references;
};

/// Puts the errors of these elements against the exact results into `result`: the largest in units in the last place and the largest
/// in size. Leaves it as it is where no element has an exact result.
void MeasureErrors(const ExactElements& exact, const TensorData& observed, Classification* result);

/// Classifies every observed value.
std::map<std::string, Classification> ClassifyValues(const CaseOracle& oracle,
                                                     const std::map<std::string, TensorData>& observed,
                                                     const ClassifyOptions& options = {});

}  // namespace ulpscope
