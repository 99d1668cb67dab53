// Building blocks of op expansions.
#include "oracles/lower.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "harness/base/check.h"
#include "harness/words/promotion.h"

namespace ulpscope {

Shape BroadcastShapes(const Shape& a, const Shape& b) {
  Shape shape(std::max(a.size(), b.size()));
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) throw LoweringError{"shapes cannot be broadcast together"};
    shape[shape.size() - 1 - i] = x == 1 ? y : x;
  }
  return shape;
}

namespace {

/// Strides that read a tensor of shape `from` at the coordinates of a broadcast shape `to`.
std::vector<int64_t> BroadcastStrides(const Shape& from, const Shape& to) {
  const auto own = RowMajorStrides(from);
  std::vector<int64_t> strides(to.size(), 0);
  const size_t shift = to.size() - from.size();
  for (size_t axis = 0; axis < from.size(); ++axis) strides[shift + axis] = from[axis] == 1 ? 0 : own[axis];
  return strides;
}

int64_t Wrap(int64_t dim, size_t rank) {
  const int64_t wrapped = dim < 0 ? dim + static_cast<int64_t>(rank) : dim;
  if (wrapped < 0 || wrapped >= static_cast<int64_t>(rank)) throw LoweringError{"dimension out of range"};
  return wrapped;
}

/// PyTorch has no common type of two float8 types; a product that requests its dtype has one all the same.
DType Common(DType a, DType b) { return Promote(a, b).value_or(DType::kFloat32); }

}  // namespace

int Lowering::Emit(PlanNode node) {
  ULPSCOPE_CHECK(HasItsPart(node), "a node with the part of another kind");
  bool needs = false;
  for (const int arg : node.args) needs = needs || needs_grad[static_cast<size_t>(arg)];
  needs = needs && !IsCondition(node.kind) && node.kind != NodeKind::kPlace;
  plan.nodes.push_back(std::move(node));
  needs_grad.push_back(needs && grad_enabled);
  return static_cast<int>(plan.nodes.size()) - 1;
}

int Lowering::Input(const TensorSpec& tensor) {
  return Emit({.kind = NodeKind::kInput,
               .shape = tensor.shape,
               .dtype = tensor.dtype,
               .part = TensorRead{.tensor = tensor.name}});
}

int Lowering::Constant(int64_t numerator, int64_t denominator, DType dtype) {
  return Emit({.kind = NodeKind::kConstant,
               .dtype = dtype,
               .part = IntegerRatio{.numerator = numerator, .denominator = denominator}});
}

int Lowering::IrrationalConstant(Irrational constant, DType dtype) {
  return Emit({.kind = NodeKind::kConstant, .dtype = dtype, .part = constant});
}

int Lowering::Scalar(double value, DType dtype) {
  return Emit({.kind = NodeKind::kConstant, .dtype = dtype, .part = DoubleNumber{.value = value}});
}

int Lowering::PythonScalar(double value, DType dtype, std::string_view op) {
  return Emit({.kind = NodeKind::kConstant,
               .dtype = dtype,
               .part = DoubleNumber{.value = value, .scalar = "scalar." + std::string(op)}});
}

int Lowering::Elementwise(NodeKind kind, std::vector<int> args, std::optional<DType> dtype) {
  PlanNode node{.kind = kind, .shape = at(args[0]).shape};
  for (const int arg : args) node.shape = BroadcastShapes(node.shape, at(arg).shape);
  Arrangement read;
  for (const int arg : args) read.strides.push_back(BroadcastStrides(at(arg).shape, node.shape));
  node.part = std::move(read);
  if (dtype) {
    node.dtype = *dtype;
  } else {
    // 0-dim operands (and Python scalars) take part in the type only if nothing else does.
    std::optional<DType> promoted, zero_dim;
    for (const int arg : args) {
      auto& into = at(arg).shape.empty() ? zero_dim : promoted;
      into = into ? Common(*into, at(arg).dtype) : at(arg).dtype;
    }
    node.dtype = promoted ? *promoted : *zero_dim;
  }
  node.args = std::move(args);
  return Emit(std::move(node));
}

int Lowering::Cast(int node, DType dtype) { return Elementwise(NodeKind::kCast, {node}, dtype); }
int Lowering::Store(int node, DType dtype) { return Elementwise(NodeKind::kStore, {node}, dtype); }

int Lowering::Reshape(int node, Shape shape) {
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1)
      open = static_cast<int64_t>(i);
    else
      known *= shape[i];
  }
  if (open >= 0) shape[static_cast<size_t>(open)] = known == 0 ? 0 : plan.size(node) / known;
  if (ElementCount(shape) != plan.size(node)) throw LoweringError{"reshape changes the number of elements"};
  auto strides = RowMajorStrides(shape);
  const int id = Strided(node, std::move(shape), std::move(strides));
  views[id] = {.kind = ViewOrigin::Kind::kReshape, .order = {}};
  return id;
}

int Lowering::Permute(int node, const std::vector<int64_t>& order) {
  const Shape& from = at(node).shape;
  if (order.size() != from.size()) throw LoweringError{"permute names another number of dimensions"};
  const auto own = RowMajorStrides(from);
  Shape shape;
  std::vector<int64_t> strides, wrapped;
  for (const int64_t dim : order) {
    const int64_t axis = Wrap(dim, from.size());
    wrapped.push_back(axis);
    shape.push_back(from[static_cast<size_t>(axis)]);
    strides.push_back(own[static_cast<size_t>(axis)]);
  }
  const int id = Strided(node, std::move(shape), std::move(strides));
  views[id] = {.kind = ViewOrigin::Kind::kPermute, .order = wrapped};
  return id;
}

int Lowering::Transpose(int node, int64_t dim0, int64_t dim1) {
  const size_t rank = at(node).shape.size();
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(Wrap(dim0, rank))], order[static_cast<size_t>(Wrap(dim1, rank))]);
  return Permute(node, order);
}

int Lowering::Expand(int node, Shape shape) {
  const Shape& from = at(node).shape;
  if (from == shape) return node;
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t shift = shape.size() - from.size();
    if (shape[i] != -1) continue;
    if (i < shift) throw LoweringError{"expand: -1 names a dimension that the operand does not have"};
    shape[i] = from[i - shift];
  }
  if (BroadcastShapes(from, shape) != shape) throw LoweringError{"expand to an incompatible shape"};
  auto strides = BroadcastStrides(from, shape);
  const int id = Strided(node, std::move(shape), std::move(strides));
  views[id] = {.kind = ViewOrigin::Kind::kExpand, .order = {}};
  return id;
}

int Lowering::Select(int node, int64_t dim, int64_t index) {
  Shape shape = at(node).shape;
  const int64_t axis = Wrap(dim, shape.size());
  const auto place = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  if (index < 0) index += *place;
  if (index < 0 || index >= *place) throw LoweringError{"select index out of range"};
  auto strides = RowMajorStrides(shape);
  const auto stride = strides.begin() + static_cast<std::ptrdiff_t>(axis);
  const int64_t offset = index * *stride;
  shape.erase(place);
  strides.erase(stride);
  const int id = Strided(node, std::move(shape), std::move(strides), offset);
  views[id] = {.kind = ViewOrigin::Kind::kSlice, .order = {axis, index, 1}};
  return id;
}

int Lowering::Slice(int node, int64_t dim, int64_t start, int64_t end, int64_t step) {
  const Shape from = at(node).shape;
  const auto axis = static_cast<size_t>(Wrap(dim, from.size()));
  const auto within = [&](int64_t place) {
    return std::clamp<int64_t>(place < 0 ? place + from[axis] : place, 0, from[axis]);
  };
  if (step < 1) throw LoweringError{"slice: step must be positive"};
  start = within(start);
  end = std::max(start, within(end));
  const auto own = RowMajorStrides(from);
  auto strides = own;
  strides[axis] *= step;
  Shape shape = from;
  shape[axis] = (end - start + step - 1) / step;
  const int id = Strided(node, std::move(shape), std::move(strides), start * own[axis]);
  views[id] = {.kind = ViewOrigin::Kind::kSlice, .order = {static_cast<int64_t>(axis), start, step}};
  return id;
}

int Lowering::Strided(int node, Shape shape, std::vector<int64_t> strides, int64_t offset) {
  return Emit({.kind = NodeKind::kView,
               .args = {node},
               .shape = std::move(shape),
               .dtype = at(node).dtype,
               .part = Arrangement{.strides = {std::move(strides)}, .offset = offset}});
}

int Lowering::Join(const std::vector<int>& nodes, int64_t dim, DType dtype) {
  Shape joined = at(nodes[0]).shape;
  const auto axis = static_cast<size_t>(Wrap(dim, joined.size()));
  joined[axis] = 0;
  for (const int part : nodes) {
    Shape shape = at(part).shape;
    if (shape.size() != joined.size()) throw LoweringError{"what is joined has another number of dimensions"};
    joined[axis] += shape[axis];
    shape[axis] = joined[axis];
    if (shape != joined) throw LoweringError{"what is joined differs in another dimension than that one"};
  }
  return Emit({.kind = NodeKind::kJoin,
               .args = nodes,
               .shape = std::move(joined),
               .dtype = dtype,
               .part = Joined{.axis = static_cast<int64_t>(axis)}});
}

int Lowering::Gather(int node, int64_t dim, int index) {
  const Shape from = at(node).shape, of = at(index).shape;
  if (IsFloating(at(index).dtype) || of.size() != from.size())
    throw LoweringError{"gather: the index is no tensor of whole numbers with as many dimensions"};
  const auto axis = static_cast<size_t>(Wrap(dim, from.size()));
  Taken taken{.strides = RowMajorStrides(from), .numbers = RowMajorStrides(of), .extent = from[axis]};
  taken.apart = std::exchange(taken.strides[axis], 0);
  return Emit({.kind = NodeKind::kTake,
               .args = {node, index},
               .shape = of,
               .dtype = at(node).dtype,
               .part = std::move(taken)});
}

int Lowering::Pick(int node, int64_t dim, int index) {
  const Shape from = at(node).shape, of = at(index).shape;
  if (IsFloating(at(index).dtype)) throw LoweringError{"an index is a tensor of whole numbers"};
  const auto axis = static_cast<size_t>(Wrap(dim, from.size()));
  const auto at_axis = static_cast<std::ptrdiff_t>(axis);
  // All axes of the numbers replace that one.
  const auto instead = [&](std::vector<int64_t> all, const std::vector<int64_t>& inside) {
    const auto place = all.erase(all.begin() + at_axis);
    all.insert(place, inside.begin(), inside.end());
    return all;
  };
  const auto own = RowMajorStrides(from);
  return Emit({.kind = NodeKind::kTake,
               .args = {node, index},
               .shape = instead(from, of),
               .dtype = at(node).dtype,
               .part = Taken{.strides = instead(own, std::vector<int64_t>(of.size(), 0)),
                             .numbers = instead(std::vector<int64_t>(from.size(), 0), RowMajorStrides(of)),
                             .apart = own[axis],
                             .extent = from[axis],
                             .axis = static_cast<int64_t>(axis)}});
}

int Lowering::Count(double start, double step, int64_t count, DType dtype) {
  return Emit({.kind = NodeKind::kCount,
               .shape = {count},
               .dtype = dtype,
               .part = Progression{.start = start, .step = step}});
}

int Lowering::Scan(int node, int64_t dim, std::optional<DType> dtype) {
  const Shape shape = at(node).shape;
  const int64_t axis = Wrap(dim, shape.size());
  return Emit({.kind = NodeKind::kScan,
               .args = {node},
               .shape = shape,
               .dtype = dtype.value_or(at(node).dtype),
               .part = AlongAxes{.axes = {axis}, .length = shape[static_cast<size_t>(axis)]}});
}

int Lowering::Sum(int node, std::vector<int64_t> axes, bool keepdim, std::optional<DType> dtype) {
  return Along(NodeKind::kReduce, node, std::move(axes), keepdim, dtype);
}

int Lowering::Maximum(int node, std::vector<int64_t> axes, bool keepdim) {
  return Along(NodeKind::kMaximum, node, std::move(axes), keepdim);
}

int Lowering::Minimum(int node, std::vector<int64_t> axes, bool keepdim) {
  return Along(NodeKind::kMinimum, node, std::move(axes), keepdim);
}

int Lowering::Ranked(NodeKind kind, int node, int64_t dim, const Ranking& ranking) {
  if (plan.size(node) == 0) throw LoweringError{"nothing has no order"};
  const Shape from = at(node).shape;
  const int64_t axis = Wrap(dim, from.size());
  Shape kept = from, shape = from;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  kept[static_cast<size_t>(axis)] = 1;
  const int id =
      Emit({.kind = kind,
            .args = {node},
            .shape = std::move(shape),
            .dtype = kind == NodeKind::kPlace ? DType::kInt64 : at(node).dtype,
            .part = RankedAlong{{.axes = {axis}, .length = from[static_cast<size_t>(axis)]}, ranking}});
  return Reshape(id, std::move(kept));
}

int Lowering::Along(NodeKind kind, int node, std::vector<int64_t> axes, bool keepdim,
                    std::optional<DType> dtype) {
  if ((kind == NodeKind::kMaximum || kind == NodeKind::kMinimum) && plan.size(node) == 0)
    throw LoweringError{"a maximum over nothing has no value"};
  const Shape from = at(node).shape;
  for (auto& axis : axes) axis = Wrap(axis, from.size());
  if (axes.empty()) {
    axes.resize(from.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  std::ranges::sort(axes);
  Shape shape, kept;
  int64_t length = 1;
  for (size_t axis = 0; axis < from.size(); ++axis) {
    const bool vanishes = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(axis));
    if (vanishes)
      length *= from[axis];
    else
      shape.push_back(from[axis]);
    kept.push_back(vanishes ? 1 : from[axis]);
  }
  const int id = Emit({.kind = kind,
                       .args = {node},
                       .shape = std::move(shape),
                       .dtype = dtype.value_or(at(node).dtype),
                       .part = AlongAxes{.axes = std::move(axes), .length = length}});
  return keepdim ? Reshape(id, std::move(kept)) : id;
}

int Lowering::SumTo(int node, Shape shape) {
  const Shape from = at(node).shape;
  if (from == shape) return node;
  std::vector<int64_t> axes;
  const size_t shift = from.size() - shape.size();
  for (size_t axis = 0; axis < from.size(); ++axis) {
    if (axis < shift || (shape[axis - shift] == 1 && from[axis] != 1))
      axes.push_back(static_cast<int64_t>(axis));
  }
  const int sum = axes.empty() ? node : Sum(node, axes, false);
  return Reshape(sum, std::move(shape));
}

}  // namespace ulpscope
