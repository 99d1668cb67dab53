// One classifier for each value.
#include "harness/judge/classify.h"

#include <algorithm>
#include <cmath>

#include "harness/judge/classifier.h"
#include "harness/num/float_format.h"

namespace ulpscope {

Classification ClassifyValue(const CaseOracle& oracle, const std::string& value, const TensorData& observed,
                             const ClassifyOptions& options) {
  return Classifier(oracle, value, observed, options).Run();
}

void MeasureErrors(const ExactElements& exact, const TensorData& observed, Classification* result) {
  const FloatFormat& format = *FormatOf(observed.dtype);
  double ulp = 0, absolute = 0;
  bool any = false;
  for (size_t i = 0; i < exact.elements.size(); ++i) {
    const Reference& due = exact.references[i];
    if (due.kind == ReferenceKind::kUndecided || due.kind == ReferenceKind::kDomain) continue;
    const double stored = observed.At(exact.elements[i]);
    const double error = std::fabs((stored - due.hi) - due.lo);
    any = true;
    ulp = std::max(ulp, std::fabs(UlpError(stored, due.value(), format)));
    absolute = std::max(absolute, std::isnan(error) ? kInf : error);
  }
  if (!any) return;
  result->max_ulp = ulp;
  result->max_abs = absolute;
}

std::map<std::string, Classification> ClassifyValues(const CaseOracle& oracle,
                                                     const std::map<std::string, TensorData>& observed,
                                                     const ClassifyOptions& options) {
  std::map<std::string, Classification> all;
  for (const auto& [value, data] : observed) all.emplace(value, ClassifyValue(oracle, value, data, options));
  return all;
}

}  // namespace ulpscope
