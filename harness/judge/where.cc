// Bounding boxes of outliers.
#include "harness/judge/where.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"

namespace ulpscope {
namespace {

std::string AxisName(size_t axis, size_t axes, bool many) {
  if (axis + 1 == axes) return many ? "columns" : "column";
  if (axis + 2 == axes) return many ? "rows" : "row";
  return fmt::format("axis {}:", axis);
}

}  // namespace

std::optional<Place> PlaceOf(const Shape& shape, std::span<const int64_t> looked,
                             std::span<const int64_t> odd) {
  if (odd.empty() || shape.empty() || odd.size() == looked.size()) return std::nullopt;
  std::vector<int64_t> low(shape), high(shape.size(), -1);
  for (const int64_t element : odd) {
    const auto at = Coordinates(element, shape);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      low[axis] = std::min(low[axis], at[axis]);
      high[axis] = std::max(high[axis], at[axis]);
    }
  }
  Place place;
  for (const int64_t element : looked) {
    const auto at = Coordinates(element, shape);
    bool inside = true;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      inside = inside && at[axis] >= low[axis] && at[axis] <= high[axis];
    (inside ? place.inside : place.outside).push_back(element);
  }
  // A narrow rounding leaves some values unchanged, so a third of the box is enough.
  if (place.inside.size() * 2 > looked.size() || odd.size() * 3 < place.inside.size()) return std::nullopt;
  if (place.inside.size() == 1) {
    place.words = fmt::format("element [{}]", Join(Coordinates(odd[0], shape), ", "));
    return place;
  }
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (low[axis] == 0 && high[axis] + 1 == shape[axis]) continue;
    if (!place.words.empty()) place.words += ", ";
    place.words +=
        low[axis] == high[axis]
            ? fmt::format("{} {}", AxisName(axis, shape.size(), false), low[axis])
            : fmt::format("{} {} to {}", AxisName(axis, shape.size(), true), low[axis], high[axis]);
  }
  return place;
}

}  // namespace ulpscope
