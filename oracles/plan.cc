// Properties of a node, and the path through views.
#include "oracles/plan.h"

#include <bit>

namespace ulpscope {
namespace {

/// The element of the argument of `view` that its element `index` shows.
int64_t StepOver(const PlanNode& view, int64_t index) {
  const Arrangement& shown = view.Get<Arrangement>();
  return shown.offset + PlaceBy(shown.strides[0], view.shape, index);
}

}  // namespace

bool HasItsPart(const PlanNode& node) {
  switch (node.kind) {
    case NodeKind::kInput:
      return node.If<TensorRead>() != nullptr;
    case NodeKind::kConstant:
      return node.If<IntegerRatio>() != nullptr || node.If<DoubleNumber>() != nullptr ||
             node.If<Irrational>() != nullptr;
    case NodeKind::kJoin:
      return node.If<Joined>() != nullptr;
    case NodeKind::kTake:
      return node.If<Taken>() != nullptr;
    case NodeKind::kCount:
      return node.If<Progression>() != nullptr;
    case NodeKind::kContract:
      return node.If<Contraction>() != nullptr;
    default:
      break;
  }
  if (IsRanked(node.kind)) return node.If<RankedAlong>() != nullptr;
  if (IsReduction(node.kind) || TakesLine(node.kind)) return node.If<AlongAxes>() != nullptr;
  return node.If<Arrangement>() != nullptr;
}

int64_t PlanNode::terms() const {
  if (kind == NodeKind::kContract) return Get<Contraction>().k;
  return IsReduction(kind) || TakesLine(kind) ? along().length : 1;
}

std::optional<double> PlanNode::constant() const {
  if (const DoubleNumber* number = If<DoubleNumber>()) return number->value;
  if (If<Irrational>() != nullptr) return std::nullopt;
  const IntegerRatio& ratio = Get<IntegerRatio>();
  return static_cast<double>(ratio.numerator) / static_cast<double>(ratio.denominator);
}

const FloatFormat* AskedFormat(const PlanNode& node) {
  return node.kind == NodeKind::kCast && !node.handed_on ? FormatOf(node.dtype) : nullptr;
}

bool IsPowerOfTwo(const PlanNode& node) {
  const IntegerRatio* ratio = node.If<IntegerRatio>();
  return ratio != nullptr && ratio->denominator == 1 && ratio->numerator > 0 &&
         std::has_single_bit(static_cast<uint64_t>(ratio->numerator));
}

int Plan::Root(int node) const {
  while (at(node).kind == NodeKind::kView) node = at(node).args[0];
  return node;
}

Plan::Line Plan::LineBelow(int node, int64_t first, int64_t step, int64_t count) const {
  Line line{.node = node, .position = first, .stride = step};
  if (count == 0) return line;
  while (at(line.node).kind == NodeKind::kView) {
    const PlanNode& view = at(line.node);
    int64_t stride = 0;
    if (line.stride != 0) {
      // The axis that the line follows from its first coordinate to its last one.
      size_t axis = view.shape.size();
      int64_t inner = 1;
      while (axis > 0) {
        const int64_t extent = view.shape[--axis];
        if (inner == line.stride && extent == count && line.position / inner % extent == 0) break;
        inner *= extent;
        if (axis == 0) return line;
      }
      if (view.shape.empty()) return line;
      stride = view.Get<Arrangement>().strides[0][axis];
    }
    line = {.node = view.args[0], .position = StepOver(view, line.position), .stride = stride};
  }
  return line;
}

int64_t Plan::RootIndex(int node, int64_t index) const {
  constexpr int64_t kMostMapped = int64_t{1} << 18;
  const auto walk = [&](int64_t place) {
    for (int id = node; at(id).kind == NodeKind::kView; id = at(id).args[0]) place = StepOver(at(id), place);
    return place;
  };
  const int64_t count = size(node);
  if (count > kMostMapped) return walk(index);
  if (view_maps.size() < nodes.size()) view_maps.resize(nodes.size());
  auto& map = view_maps[static_cast<size_t>(node)];
  if (map.empty()) {
    map.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) map[static_cast<size_t>(i)] = walk(i);
  }
  return map[static_cast<size_t>(index)];
}

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

}  // namespace ulpscope
