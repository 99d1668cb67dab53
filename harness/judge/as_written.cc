// Simulates the expected result in every known order and compares it with the observed one.
#include "harness/judge/as_written.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/judge/sample.h"
#include "harness/model/conforming.h"
#include "harness/model/tensor_diff.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

namespace {

constexpr std::string_view kScalar = "scalar.";

/// A number may be converted to float32 first, or computed with in 16 bits if the result has 16 bits: kernels do both.
bool IsPlain(const PrecisionModel& model) { return IsConforming(model, Binary32(), kWritten); }

/// Hypotheses of the expected computation, by how they convert Python numbers: a backend converts them in one way.
using Ways = std::vector<std::vector<std::unique_ptr<Hypothesis>>>;

Ways Written(const CaseOracle& written, const ValueShape& shape, DType observed) {
  Ways ways;
  ways.push_back(written.Bank(shape.name, observed));
  if (shape.reduction_length > 0 || FormatOf(observed)->precision > Binary32().precision) return ways;
  const bool narrow = FormatOf(observed)->precision < Binary32().precision;
  const RoundSpec float32 = ToNearest(Binary32());
  std::map<std::string, RoundSpec> numbers;
  for (const std::string& operand : shape.operands) {
    if (operand.starts_with(kScalar)) numbers[operand] = float32;
  }
  const auto propose = [&](const std::map<std::string, RoundSpec>& in, const RoundSpec& mid) {
    for (auto& also : written.Propose(shape.name, observed, std::vector<Proposal>{{.in = in, .mid = mid}})) {
      if (IsPlain(also->model())) ways.back().push_back(std::move(also));
    }
  };
  if (narrow) propose({}, float32);
  if (numbers.empty()) return ways;
  ways.emplace_back();
  propose(numbers, {});
  if (narrow) propose(numbers, float32);
  return ways;
}

}  // namespace

bool IsAsWritten(const Classification& classification) {
  return std::ranges::any_of(classification.models, IsPlain);
}

bool IsGivenAsWritten(const CaseOracle& written, const std::string& value, const TensorData& observed,
                      const std::vector<int64_t>& elements) {
  const auto shape = written.Describe(value);
  if (!shape || elements.empty()) return false;
  for (const auto& models : Written(written, *shape, observed.dtype)) {
    for (const auto& model : models) {
      for (const int order : model->Orders()) {
        const auto stored = model->Stored(order, elements);
        bool all = true;
        for (size_t k = 0; k < elements.size() && all; ++k)
          all = SameValue(stored[k], observed.At(elements[k]));
        if (all) return true;
      }
    }
  }
  return false;
}

void ShowAsWritten(const CaseOracle& written, const std::string& value, const TensorData& observed,
                   Classification* result) {
  // Chosen: a step costs milliseconds at most.
  constexpr int64_t kMostLookedAt = 4096, kMostTerms = int64_t{1} << 21;
  constexpr size_t kMostShown = 64;  // chosen: enough to find an element that the other side has otherwise
  const auto shape = written.Describe(value);
  if (!shape) return;
  const auto looked = ElementsToCheck(
      observed.shape,
      std::clamp(kMostTerms / std::max<int64_t>(1, 4 * shape->terms), int64_t{64}, kMostLookedAt));
  struct Given {
    std::vector<bool> given;
    std::vector<double> nearest;
  };
  std::optional<Given> best;
  for (const auto& models : Written(written, *shape, observed.dtype)) {
    Given way{.given = std::vector<bool>(looked.size(), false),
              .nearest = std::vector<double>(looked.size(), std::numeric_limits<double>::quiet_NaN())};
    for (const auto& model : models) {
      for (const int order : model->Orders()) {
        const auto stored = model->Stored(order, looked);
        for (size_t k = 0; k < looked.size(); ++k) {
          const double here = observed.At(looked[k]);
          way.given[k] = way.given[k] || SameValue(stored[k], here);
          if (!(std::fabs(way.nearest[k] - here) <= std::fabs(stored[k] - here))) way.nearest[k] = stored[k];
        }
      }
    }
    if (!best || std::ranges::count(way.given, true) > std::ranges::count(best->given, true))
      best = std::move(way);
  }
  const std::vector<bool>& given = best->given;
  const std::vector<double>& nearest = best->nearest;
  result->shown_by.clear();
  result->as_written.clear();
  result->shown_count = std::ranges::count(given, false);
  result->shown_of = static_cast<int64_t>(looked.size());
  // The furthest off, in the order of the tensor.
  std::vector<size_t> off;
  for (size_t k = 0; k < looked.size(); ++k) {
    if (!given[k]) off.push_back(k);
  }
  if (off.size() > kMostShown) {
    const auto distance = [&](size_t k) {
      return ElementDistance(observed.At(looked[k]), nearest[k], observed.dtype);
    };
    std::ranges::stable_sort(off, std::greater(), distance);
    off.resize(kMostShown);
    std::ranges::sort(off);
  }
  for (const size_t k : off) {
    result->shown_by.push_back(looked[k]);
    result->as_written.push_back(nearest[k]);
  }
}

}  // namespace ulpscope
