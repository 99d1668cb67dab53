// Picks the element that is shown.
#include "harness/judge/witness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/tensor_diff.h"

namespace ulpscope {
namespace {

int64_t IndexOf(const std::vector<int64_t>& element, const Shape& shape) {
  int64_t index = 0;
  for (size_t axis = 0; axis < element.size() && axis < shape.size(); ++axis)
    index = index * shape[axis] + element[axis];
  return index;
}

/// Whether what a step read has the same bits on both sides where element `index` of `value` comes from, as far as operands of
/// its shape tell.
bool ReadTheSame(const Side& mine, const Side& rival, const std::string& value, int64_t index) {
  const Shape& shape = TensorOf(mine, value)->shape;
  for (const auto& [operand, words] : ValueOf(mine, value).classification.reads) {
    const TensorData *a = TensorOf(mine, operand), *b = TensorOf(rival, operand);
    if (operand == value || a == nullptr || b == nullptr || a->shape != shape || b->shape != shape) continue;
    const double x = a->At(index), y = b->At(index);
    if (x != y && !(x != x && y != y)) return false;
  }
  return true;
}

/// An element where the sides differ, best one where that is what is said of the first side's doing, then one where they computed
/// it from the same, and each side is of one mind: one that a model of the rival cannot give, else the first.
std::optional<int64_t> WitnessOf(const Side& mine, const Side& rival, const std::string& value) {
  const TensorData *a = TensorOf(mine, value), *b = TensorOf(rival, value);
  if (a == nullptr || b == nullptr || a->shape != b->shape || a->dtype != b->dtype) return std::nullopt;
  const auto differs = [&](int64_t index) {
    const double x = a->At(index), y = b->At(index);
    return x != y && !(x != x && y != y);
  };
  std::vector<int64_t> candidates;
  for (const auto& [side, other] : {std::pair{&mine, &rival}, std::pair{&rival, &mine}}) {
    const Classification& left = ValueOf(*side, value).classification;
    const Classification& right = ValueOf(*other, value).classification;
    const auto& models = right.models_proved.empty() ? right.models : right.models_proved;
    for (const Exclusion& exclusion : left.excluded) {
      if (!Contains(models, exclusion.model)) continue;
      const int64_t index = IndexOf(exclusion.element, a->shape);
      if (index < a->size() && differs(index)) candidates.push_back(index);
    }
  }
  for (int64_t index = 0; index < a->size(); ++index) {
    if (differs(index)) candidates.push_back(index);
  }
  const auto fair = [&](int64_t index) { return ReadTheSame(mine, rival, value, index); };
  const auto shared = [&](int64_t index) {
    return IsShared(mine, value, index) && IsShared(rival, value, index);
  };
  // Of those in which the two differ, the one where what is said is what makes the difference.
  const std::vector<int64_t>& shown_by = ValueOf(mine, value).classification.shown_by;
  const auto shows = [&](int64_t index) { return fair(index) && Contains(shown_by, index); };
  auto best = std::ranges::find_if(candidates, [&](int64_t index) { return shows(index) && shared(index); });
  if (best == candidates.end()) best = std::ranges::find_if(candidates, shows);
  if (best == candidates.end())
    best = std::ranges::find_if(candidates, [&](int64_t index) { return fair(index) && shared(index); });
  if (best == candidates.end()) best = std::ranges::find_if(candidates, fair);
  if (best == candidates.end()) best = std::ranges::find_if(candidates, shared);
  if (best != candidates.end()) return *best;
  return candidates.empty() ? std::nullopt : std::optional(candidates.front());
}

}  // namespace

bool IsShared(const Side& side, const std::string& value, int64_t index) {
  const double shown = TensorOf(side, value)->At(index);
  return std::ranges::all_of(side.all, [&](const Observation* each) {
    if (each == nullptr || !each->values.contains(value)) return true;
    const double other = each->values.at(value).At(index);
    return other == shown ? std::signbit(other) == std::signbit(shown) : other != other && shown != shown;
  });
}

std::string OnWhom(const Side& side, const std::string& value, int64_t index) {
  return IsShared(side, value, index) ? "" : " on " + side.speaker.result->backend;
}

std::string Witness(const Side& first, const Side& second, const std::string& value) {
  const auto index = WitnessOf(first, second, value);
  if (!index) return "";
  const TensorData &a = *TensorOf(first, value), &b = *TensorOf(second, value);
  return fmt::format(": {}{} is {}{} against {}{}", value, Bracketed(Coordinates(*index, a.shape)),
                     FormatDecimal(a.At(*index)), OnWhom(first, value, *index), FormatDecimal(b.At(*index)),
                     OnWhom(second, value, *index));
}

}  // namespace ulpscope
