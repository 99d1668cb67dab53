// Data movement: joining, splitting, taking by numbers, and ops made by counting. Nothing here rounds except the output
// rounding of the moved values.
#include <algorithm>
#include <utility>

#include "oracles/ops/composite.h"

namespace ulpscope {
namespace {

int Moved(Lowering& low, int node) { return low.Store(node, low.at(node).dtype); }

std::vector<size_t> AllPlaces(const OpCall& call) {
  std::vector<size_t> places(call.args.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  return places;
}

int64_t IntegerOr(const Step& step, const std::string& name, int64_t otherwise) {
  return IntAttr(step, name).value_or(otherwise);
}

/// Rows below or columns right of a diagonal become zero: an element is kept if its column is at most (tril) or at
/// least (triu) its row plus `diagonal`.
int Triangle(Lowering& low, const OpCall& call, bool lower) {
  NeedOperands(call, 1, 1);
  const int x = call.args[0];
  const Shape shape = low.at(x).shape;
  if (shape.size() < 2) throw LoweringError{call.step.op + ": needs a matrix"};
  const DType dtype = low.at(x).dtype;
  const auto diagonal = static_cast<double>(IntegerOr(call.step, "diagonal", 0));
  const int64_t rows = shape[shape.size() - 2];
  const int row = low.Reshape(low.Count(diagonal, 1, rows, DType::kInt64), {rows, 1});
  const int column = low.Count(0, 1, shape.back(), DType::kInt64);
  const int kept = low.Elementwise(NodeKind::kLessEqual,
                                   lower ? std::vector{column, row} : std::vector{row, column}, DType::kBool);
  return Moved(low, low.Elementwise(NodeKind::kChoose, {x, low.Scalar(0, dtype), kept}, dtype));
}

}  // namespace

int LowerCat(Lowering& low, const OpCall& call) {
  const DType dtype = CommonType(low, call, AllPlaces(call));
  return low.Store(low.Join(call.args, IntegerOr(call.step, "dim", 0), dtype), dtype);
}

int LowerStack(Lowering& low, const OpCall& call) {
  int64_t dim = IntegerOr(call.step, "dim", 0);
  std::vector<int> parts;
  for (const int arg : call.args) {
    Shape shape = low.at(arg).shape;
    const auto rank = static_cast<int64_t>(shape.size()) + 1;
    if (dim < -rank || dim >= rank) throw LoweringError{"stack: dimension out of range"};
    if (dim < 0) dim += rank;
    shape.insert(shape.begin() + dim, 1);
    parts.push_back(low.Reshape(arg, shape));
  }
  const DType dtype = CommonType(low, call, AllPlaces(call));
  return low.Store(low.Join(parts, dim, dtype), dtype);
}

int LowerSlice(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  return low.Slice(call.args[0], IntegerOr(call.step, "dim", 0), IntegerOr(call.step, "start", 0),
                   IntegerOr(call.step, "end", int64_t{1} << 62), IntegerOr(call.step, "step", 1));
}

int LowerNarrow(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  const int64_t dim = IntegerOr(call.step, "dim", 0), length = IntegerOr(call.step, "length", 0);
  const Shape shape = low.at(call.args[0]).shape;
  const auto axis = static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim);
  int64_t start = IntegerOr(call.step, "start", 0);
  if (axis >= shape.size()) throw LoweringError{"narrow: dimension out of range"};
  if (start < 0) start += shape[axis];
  if (start < 0 || length < 0 || start + length > shape[axis])
    throw LoweringError{"narrow: beyond the tensor"};
  return low.Slice(call.args[0], dim, start, start + length, 1);
}

int LowerFlatten(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  const Shape shape = low.at(call.args[0]).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t first = IntegerOr(call.step, "start_dim", 0), last = IntegerOr(call.step, "end_dim", -1);
  if (first < 0) first += rank;
  if (last < 0) last += rank;
  if (rank == 0) return low.Reshape(call.args[0], {1});
  if (first < 0 || last >= rank || first > last) throw LoweringError{"flatten: dimensions out of order"};
  Shape flat(shape.begin(), shape.begin() + first);
  int64_t extent = 1;
  for (int64_t i = first; i <= last; ++i) extent *= shape[static_cast<size_t>(i)];
  flat.push_back(extent);
  flat.insert(flat.end(), shape.begin() + last + 1, shape.end());
  return low.Reshape(call.args[0], flat);
}

int LowerRoll(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  const auto shifts = IntsAttr(call.step, "shifts"), dims = IntsAttr(call.step, "dims");
  const Shape shape = low.at(call.args[0]).shape;
  const DType dtype = low.at(call.args[0]).dtype;
  if (shifts.size() != (dims.empty() ? 1 : dims.size())) throw LoweringError{"roll: one shift a dimension"};
  int node = dims.empty() ? low.Reshape(call.args[0], {-1}) : call.args[0];
  for (size_t i = 0; i < shifts.size(); ++i) {
    const int64_t dim = dims.empty() ? 0 : dims[i];
    const Shape own = low.at(node).shape;
    const auto axis = static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(own.size()) : dim);
    if (axis >= own.size()) throw LoweringError{"roll: dimension out of range"};
    const int64_t extent = own[axis], shift = extent == 0 ? 0 : ((shifts[i] % extent) + extent) % extent;
    if (shift == 0) continue;
    const int last = low.Slice(node, dim, extent - shift, extent, 1);
    node = low.Join({last, low.Slice(node, dim, 0, extent - shift, 1)}, dim, dtype);
  }
  return Moved(low, low.Reshape(node, shape));
}

namespace {

/// The elements along `axis` in the order of `numbers`, one dimension of whole numbers.
int Rearranged(Lowering& low, int node, size_t axis, int numbers) {
  return low.Pick(node, static_cast<int64_t>(axis), numbers);
}

int Flipped(Lowering& low, int node, const std::vector<int64_t>& dims) {
  const size_t rank = low.at(node).shape.size();
  for (const int64_t dim : dims) {
    const auto axis = static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim);
    if (axis >= rank) throw LoweringError{"flip: dimension out of range"};
    const int64_t extent = low.at(node).shape[axis];
    if (extent > 1)
      node =
          Rearranged(low, node, axis, low.Count(static_cast<double>(extent - 1), -1, extent, DType::kInt64));
  }
  return node;
}

/// The source indices along a dimension of `extent` after padding.
int PaddedNumbers(Lowering& low, const std::string& mode, int64_t extent, int64_t before, int64_t after) {
  if (mode == "reflect" ? before >= extent || after >= extent
                        : extent < 1 || (mode == "circular" && (before > extent || after > extent)))
    throw LoweringError{"pad: more than there is to show"};
  const auto last = static_cast<double>(extent - 1), first = static_cast<double>(before);
  std::vector<int> parts;
  const auto part = [&](double start, double step, int64_t count) {
    if (count > 0) parts.push_back(low.Count(start, step, count, DType::kInt64));
  };
  part(mode == "reflect"    ? first
       : mode == "circular" ? static_cast<double>(extent) - first
                            : 0,
       mode == "reflect"    ? -1
       : mode == "circular" ? 1
                            : 0,
       before);
  part(0, 1, extent);
  part(mode == "reflect"    ? last - 1
       : mode == "circular" ? 0
                            : last,
       mode == "reflect"    ? -1
       : mode == "circular" ? 1
                            : 0,
       after);
  return parts.size() == 1 ? parts[0] : low.Join(parts, 0, DType::kInt64);
}

/// Elements of a constant before and after, or fewer of its own if the number is negative.
int PaddedByConstant(Lowering& low, int node, size_t axis, int64_t before, int64_t after, double value) {
  const DType dtype = low.at(node).dtype;
  const auto dim = static_cast<int64_t>(axis);
  const int64_t extent = low.at(node).shape[axis];
  if (before + after + extent < 0) throw LoweringError{"pad: less than nothing"};
  if (before < 0 || after < 0)
    node = low.Slice(node, dim, std::max<int64_t>(0, -before), extent + std::min<int64_t>(0, after), 1);
  std::vector<int> parts;
  const auto part = [&](int64_t count) {
    if (count <= 0) return;
    Shape shape = low.at(node).shape;
    shape[axis] = count;
    parts.push_back(low.Expand(low.Scalar(value, dtype), shape));
  };
  part(before);
  parts.push_back(node);
  part(after);
  return parts.size() == 1 ? node : low.Join(parts, dim, dtype);
}

}  // namespace

int LowerFlip(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  const auto dims = IntsAttr(call.step, "dims");
  const int result = Moved(low, Flipped(low, call.args[0], dims));
  // The gradient is turned back; nothing is summed.
  low.own_gradients[result] = {.operand = call.args[0], .make = [dims](Lowering& inner, int grad) {
                                 return Flipped(inner, grad, dims);
                               }};
  return result;
}

int LowerPad(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  const auto pad = IntsAttr(call.step, "pad");
  const std::string mode = TextAttr(call.step, "mode", "constant");
  int node = call.args[0];
  const size_t rank = low.at(node).shape.size();
  if (pad.size() % 2 != 0 || pad.size() / 2 > rank)
    throw LoweringError{"pad: two numbers for each dimension, of which there are no more than it has"};
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const size_t axis = rank - 1 - i;
    const int64_t before = pad[2 * i], after = pad[2 * i + 1];
    if (before == 0 && after == 0) continue;
    if (mode == "constant") {
      node = PaddedByConstant(low, node, axis, before, after, NumberAttr(call.step, "value", 0));
      continue;
    }
    if (before < 0 || after < 0) throw LoweringError{"the oracle pads by fewer only with a constant"};
    node = Rearranged(low, node, axis, PaddedNumbers(low, mode, low.at(node).shape[axis], before, after));
  }
  return Moved(low, node);
}

int LowerTril(Lowering& low, const OpCall& call) { return Triangle(low, call, true); }
int LowerTriu(Lowering& low, const OpCall& call) { return Triangle(low, call, false); }

int LowerGather(Lowering& low, const OpCall& call) {
  NeedOperands(call, 2, 2);
  return Moved(low, low.Gather(call.args[0], IntegerOr(call.step, "dim", 0), call.args[1]));
}

int LowerIndexSelect(Lowering& low, const OpCall& call) {
  NeedOperands(call, 2, 2);
  if (low.at(call.args[1]).shape.size() > 1) throw LoweringError{"index_select: the index has one dimension"};
  return Moved(low, low.Pick(call.args[0], IntegerOr(call.step, "dim", 0), low.Reshape(call.args[1], {-1})));
}

int LowerEmbedding(Lowering& low, const OpCall& call) {
  NeedOperands(call, 2, 2);
  if (low.at(call.args[0]).shape.size() != 2) throw LoweringError{"embedding: the weight is no matrix"};
  return Moved(low, low.Pick(call.args[0], 0, call.args[1]));
}

namespace {

/// x, with the gradients of the places that name each element of a row added: x + given @ (index == number).
int Received(Lowering& low, int x, int index, int given, double alpha) {
  const int64_t count = low.at(x).shape.back();
  const int numbers = low.Count(0, 1, count, low.at(index).dtype);
  const int named =
      low.Store(low.Elementwise(NodeKind::kEqual, {index, numbers}, DType::kBool), low.at(x).dtype);
  const auto autocast = std::exchange(low.autocast, std::nullopt);
  const int sums = low.Matmul(given, named, x, alpha);
  low.autocast = autocast;
  return sums;
}

/// The order of dimensions with `axis` last.
std::vector<int64_t> WithLast(size_t rank, size_t axis) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < rank; ++i) {
    if (i != axis) order.push_back(static_cast<int64_t>(i));
  }
  order.push_back(static_cast<int64_t>(axis));
  return order;
}

std::vector<int64_t> Inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return inverse;
}

size_t AxisOf(const OpCall& call, const Shape& shape) {
  const int64_t dim = IntegerOr(call.step, "dim", 0);
  const int64_t axis = dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim;
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
    throw LoweringError{call.step.op + ": dimension out of range"};
  return static_cast<size_t>(axis);
}

}  // namespace

/// x[i, j, ...] from `dim` on: the numbers, broadcast to one shape, replace as many dimensions; a negative one counts
/// from the end.
int LowerIndex(Lowering& low, const OpCall& call) {
  NeedOperands(call, 2, 9);
  const Shape shape = low.at(call.args[0]).shape;
  const size_t axis = AxisOf(call, shape), count = call.args.size() - 1;
  if (axis + count > shape.size()) throw LoweringError{"index: more numbers than dimensions"};
  Shape places;
  for (size_t i = 0; i < count; ++i) {
    const PlanNode& index = low.at(call.args[i + 1]);
    if (IsFloating(index.dtype) || index.dtype == DType::kBool)
      throw LoweringError{"index: the oracle has tensors of whole numbers"};
    places = BroadcastShapes(places, index.shape);
  }
  const auto numbers = [&](size_t i) {
    const int shown = low.Reshape(low.Expand(call.args[i + 1], places), {-1});
    const DType dtype = low.at(shown).dtype;
    const int extent = low.Scalar(static_cast<double>(shape[axis + i]), dtype);
    const int from_end = low.Elementwise(NodeKind::kAdd, {shown, extent}, dtype);
    const int negative = low.Elementwise(NodeKind::kLess, {shown, low.Scalar(0, dtype)}, DType::kBool);
    return low.Elementwise(NodeKind::kChoose, {from_end, shown, negative}, dtype);
  };
  const auto next = static_cast<int64_t>(axis) + 1;
  int node = low.Pick(call.args[0], next - 1, numbers(0));
  for (size_t i = 1; i < count; ++i) {
    Shape taken = low.at(node).shape, row(taken.size(), 1);
    taken[axis + 1] = 1;
    row[axis] = taken[axis];
    const int one = low.Gather(node, next, low.Expand(low.Reshape(numbers(i), row), taken));
    taken.erase(taken.begin() + next);
    node = low.Reshape(one, taken);
  }
  Shape made(shape.begin(), shape.begin() + next - 1);
  made.insert(made.end(), places.begin(), places.end());
  made.insert(made.end(), shape.begin() + next - 1 + static_cast<std::ptrdiff_t>(count), shape.end());
  return Moved(low, low.Reshape(node, made));
}

int LowerIndexAdd(Lowering& low, const OpCall& call) {
  NeedOperands(call, 3, 3);
  const Shape shape = low.at(call.args[0]).shape, of = low.at(call.args[2]).shape;
  const size_t axis = AxisOf(call, shape);
  Shape due = shape;
  const int64_t places = low.plan.size(call.args[1]);
  due[axis] = places;
  if (IsFloating(low.at(call.args[1]).dtype) || of != due)
    throw LoweringError{
        "index_add: the source has another shape, or the index is no tensor of whole numbers"};
  const auto order = WithLast(shape.size(), axis);
  const int x = low.Permute(call.args[0], order), source = low.Permute(call.args[2], order);
  const Shape moved = low.at(x).shape;
  const int64_t count = shape[axis], lines = low.plan.size(x) / std::max<int64_t>(1, count);
  const int sums = Received(low, low.Reshape(x, {lines, count}), low.Reshape(call.args[1], {places, 1}),
                            low.Reshape(source, {lines, places}), NumberAttr(call.step, "alpha", 1));
  return low.Permute(low.Reshape(sums, moved), Inverse(order));
}

int LowerScatterAdd(Lowering& low, const OpCall& call) {
  NeedOperands(call, 3, 3);
  const Shape shape = low.at(call.args[0]).shape, of = low.at(call.args[1]).shape;
  const size_t axis = AxisOf(call, shape);
  Shape due = shape;
  if (of.size() == shape.size()) due[axis] = of[axis];
  if (of != due || low.at(call.args[2]).shape != of)
    throw LoweringError{"the oracle has no scatter_add into a part of the lines, or of a part of the source"};
  const auto order = WithLast(shape.size(), axis);
  const int x = low.Permute(call.args[0], order), index = low.Permute(call.args[1], order),
            source = low.Permute(call.args[2], order);
  const Shape moved = low.at(x).shape;
  const int64_t count = shape[axis], places = of[axis],
                lines = low.plan.size(x) / std::max<int64_t>(1, count);
  const int sums = Received(low, low.Reshape(x, {lines, 1, count}), low.Reshape(index, {lines, places, 1}),
                            low.Reshape(source, {lines, 1, places}), 1);
  return low.Permute(low.Reshape(sums, moved), Inverse(order));
}

}  // namespace ulpscope
