// Picks the element that is shown.
#include "harness/judge/witness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/model/tensor_diff.h"
#include "harness/num/float_format.h"

namespace ulpscope {
namespace {

int64_t IndexOf(const std::vector<int64_t>& element, const Shape& shape) {
  int64_t index = 0;
  for (size_t axis = 0; axis < element.size() && axis < shape.size(); ++axis)
    index = index * shape[axis] + element[axis];
  return index;
}

/// True if the step's known operands of the value's shape have the same bits on both sides at element `index`.
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

/// The elements that a model of the one side cannot give and the other gave.
std::vector<int64_t> ProvingElements(const Side& mine, const Side& rival, const std::string& value) {
  const Shape& shape = TensorOf(mine, value)->shape;
  std::vector<int64_t> proving;
  for (const auto& [side, other] : {std::pair{&mine, &rival}, std::pair{&rival, &mine}}) {
    const Classification& right = ValueOf(*other, value).classification;
    const auto& models = right.models_proved.empty() ? right.models : right.models_proved;
    for (const Exclusion& exclusion : ValueOf(*side, value).classification.excluded) {
      if (Contains(models, exclusion.model)) proving.push_back(IndexOf(exclusion.element, shape));
    }
  }
  return proving;
}

/// An element in which the sides differ, preferably one that shows the first side's behaviour, then one computed from
/// the same operands, one that a model of the rival excludes, the largest difference, one in which each side's members
/// agree. For an unexplained side, whose sentence states a distance, elements that models exclude do not count.
std::optional<int64_t> WitnessOf(const Side& mine, const Side& rival, const std::string& value) {
  const TensorData *a = TensorOf(mine, value), *b = TensorOf(rival, value);
  if (a == nullptr || b == nullptr || a->shape != b->shape || a->dtype != b->dtype) return std::nullopt;
  const Classification& own = ValueOf(mine, value).classification;
  const bool unexplained = own.kind == ClassificationKind::kUnmodelled ||
                           ValueOf(rival, value).classification.kind == ClassificationKind::kUnmodelled;
  const auto proving = unexplained ? std::vector<int64_t>() : ProvingElements(mine, rival, value);
  using Rank = std::tuple<bool, bool, bool, double, bool>;
  std::optional<int64_t> best;
  Rank highest;
  for (int64_t index = 0; index < a->size(); ++index) {
    const double x = a->At(index), y = b->At(index);
    if (SameValue(x, y)) continue;
    const bool fair = ReadTheSame(mine, rival, value, index);
    const Rank unshared{fair && Contains(own.shown_by, index), fair, Contains(proving, index),
                        ElementDistance(x, y, a->dtype), true};
    if (best && unshared <= highest) continue;
    Rank rank = unshared;
    std::get<4>(rank) = IsShared(mine, value, index) && IsShared(rival, value, index);
    if (best && rank <= highest) continue;
    best = index;
    highest = rank;
  }
  return best;
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
  return fmt::format(": {} is {} on {} and {} on {}", Code(value + Bracketed(Coordinates(*index, a.shape))),
                     FormatDecimal(a.At(*index)), first.speaker.result->backend, FormatDecimal(b.At(*index)),
                     second.speaker.result->backend);
}

}  // namespace ulpscope
