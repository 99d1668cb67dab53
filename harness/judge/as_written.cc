// Simulates what is written, in every order that is known, beside what was observed.
#include "harness/judge/as_written.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "harness/judge/sample.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

namespace {

constexpr std::string_view kScalar = "scalar.";

/// A number may be converted to float32 first, and what is stored in 16 bits be computed in it: kernels do both.
bool IsPlain(const PrecisionModel& model) {
  const auto acc = ParseAcc(model.acc);
  const auto whole_number = [](const auto& in) {
    const auto spec = ParseIn(in.second);
    return in.first.starts_with(kScalar) && spec &&
           (spec->format == nullptr || spec->bits() >= Binary32().precision);
  };
  return std::ranges::all_of(model.in, whole_number) && (model.prod == "exact" || model.prod == "float32") &&
         acc && (acc->exact() || (acc->wide() && acc->block == 0)) &&
         (model.mid == "none" || model.mid == "float32") && model.out.ends_with("_rne") &&
         std::ranges::all_of(model.cuts,
                             [](const auto& cut) { return cut.second == "none" || cut.second == "float32"; });
}

/// All that computes what is written.
std::vector<std::unique_ptr<Hypothesis>> Written(const CaseOracle& written, const ValueShape& shape,
                                                 DType observed) {
  auto models = written.Bank(shape.name, observed);
  if (shape.reduction_length > 0 || FormatOf(observed)->precision >= Binary32().precision) return models;
  std::map<std::string, std::string> numbers;
  for (const std::string& operand : shape.operands) {
    if (operand.starts_with(kScalar)) numbers[operand] = "float32_rne";
  }
  std::vector<Proposal> proposals{{.in = {}, .mid = "float32"}};
  if (!numbers.empty()) {
    proposals.push_back({.in = numbers, .mid = "none"});
    proposals.push_back({.in = numbers, .mid = "float32"});
  }
  for (auto& also : written.Propose(shape.name, observed, proposals)) {
    if (IsPlain(also->model())) models.push_back(std::move(also));
  }
  return models;
}

}  // namespace

bool IsAsWritten(const Classification& classification) {
  return std::ranges::any_of(classification.models, IsPlain);
}

void ShowAsWritten(const CaseOracle& written, const std::string& value, const TensorData& observed,
                   Classification* result) {
  constexpr int64_t kMostLookedAt = 4096, kMostTerms = int64_t{1} << 21;
  constexpr size_t kMostShown = 64;
  const auto shape = written.Describe(value);
  if (!shape) return;
  const auto looked = ElementsToCheck(
      observed.shape,
      std::clamp(kMostTerms / std::max<int64_t>(1, 4 * shape->terms), int64_t{64}, kMostLookedAt));
  std::vector<bool> given(looked.size(), false);
  std::vector<double> nearest(looked.size(), std::numeric_limits<double>::quiet_NaN());
  for (const auto& model : Written(written, *shape, observed.dtype)) {
    for (const int order : model->Orders()) {
      const auto stored = model->Stored(order, looked);
      for (size_t k = 0; k < looked.size(); ++k) {
        const double here = observed.At(looked[k]);
        given[k] = given[k] || SameValue(stored[k], here);
        if (!(std::fabs(nearest[k] - here) <= std::fabs(stored[k] - here))) nearest[k] = stored[k];
      }
    }
  }
  result->shown_by.clear();
  result->as_written.clear();
  result->shown_count = std::ranges::count(given, false);
  result->shown_of = static_cast<int64_t>(looked.size());
  for (size_t k = 0; k < looked.size() && result->shown_by.size() < kMostShown; ++k) {
    if (given[k]) continue;
    result->shown_by.push_back(looked[k]);
    result->as_written.push_back(nearest[k]);
  }
}

}  // namespace ulpscope
