// What a step gives where it is computed as it is written: the other side of what is said of it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/judge/sample.h"
#include "harness/judge/step_judge.h"

namespace ulpscope {

void StepJudge::ShowAsWritten(size_t last, Classification* result) {
  constexpr int64_t kMostLookedAt = 1024;
  constexpr size_t kMostShown = 64;
  const auto piece = Cut(last, {});
  if (!piece) return;
  const std::string& name = steps_[last].step.as;
  const TensorData& observed = values_.at(name);
  auto oracle = open_(piece->program, piece->inputs, {.unrounded = {}, .as_written = true});
  const auto shape = oracle ? (*oracle)->Describe(name) : Fail("no oracle");
  if (!shape) return;
  const auto looked = ElementsToCheck(
      observed.shape,
      std::clamp(kGrownTerms / std::max<int64_t>(1, 4 * shape->terms), int64_t{64}, kMostLookedAt));
  std::vector<bool> given(looked.size(), false);
  std::vector<double> nearest(looked.size(), std::numeric_limits<double>::quiet_NaN());
  for (const auto& model : (*oracle)->Bank(name, observed.dtype)) {
    const int orders = model->order_free() ? 0 : static_cast<int>(model->orders().size());
    for (int order = orders == 0 ? -1 : 0; order < orders; ++order) {
      const auto run = model->Simulate(order, looked);
      for (size_t k = 0; k < looked.size(); ++k) {
        const double stored = model->Store(run[k]), here = observed.At(looked[k]);
        given[k] = given[k] || stored == here || (std::isnan(stored) && std::isnan(here));
        if (!(std::fabs(nearest[k] - here) <= std::fabs(stored - here))) nearest[k] = stored;
      }
    }
  }
  result->shown_by.clear();
  result->as_written.clear();
  result->shown_count = std::count(given.begin(), given.end(), false);
  result->shown_of = static_cast<int64_t>(looked.size());
  for (size_t k = 0; k < looked.size() && result->shown_by.size() < kMostShown; ++k) {
    if (given[k]) continue;
    result->shown_by.push_back(looked[k]);
    result->as_written.push_back(nearest[k]);
  }
  counts_ += (*oracle)->Counts();
}

}  // namespace ulpscope
