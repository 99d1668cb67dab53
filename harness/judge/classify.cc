// One classifier for each value.
#include "harness/judge/classify.h"

#include "harness/judge/classifier.h"

namespace ulpscope {

Classification ClassifyValue(const CaseOracle& oracle, const std::string& value, const TensorData& observed,
                             const ClassifyOptions& options) {
  return Classifier(oracle, value, observed, options).Run();
}

std::map<std::string, Classification> ClassifyValues(const CaseOracle& oracle,
                                                     const std::map<std::string, TensorData>& observed,
                                                     const ClassifyOptions& options) {
  std::map<std::string, Classification> all;
  for (const auto& [value, data] : observed) all.emplace(value, ClassifyValue(oracle, value, data, options));
  return all;
}

}  // namespace ulpscope
