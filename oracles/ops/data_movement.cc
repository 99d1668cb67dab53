// Data movement: joining, cutting, taking by numbers, and what is made of counting. Nothing here rounds: the store of what was
// moved is the step that may.
#include <algorithm>
#include <cmath>
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

/// Rows below or columns right of a diagonal become zero: kept are elements whose column is at most (tril) or at least (triu)
/// their row and `diagonal` more.
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

/// x, and added to each element of a line what the places gave that name it: x + given @ (index == number).
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

/// start + i * step. PyTorch counts the second half back from the end; the slack bounds both.
int LowerLinspace(Lowering& low, const OpCall& call) {
  const int64_t count = IntegerOr(call.step, "num", 0);
  if (count < 1) throw LoweringError{"linspace: num is positive"};
  const DType dtype = DTypeAttr(call.step, "dtype").value_or(DType::kFloat32);
  const DType inner = dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const std::string prefix = call.step.as.empty() ? "linspace" : call.step.as;
  const int first = low.Scalar(NumberAttr(call.step, "start", 0), inner),
            last = low.Scalar(NumberAttr(call.step, "end", 0), inner);
  const int span = low.Inner(low.Elementwise(NodeKind::kSub, {last, first}, inner), prefix + ".span");
  const int between = low.Constant(std::max<int64_t>(1, count - 1), 1, inner);
  const int step =
      low.Materialised(low.Elementwise(NodeKind::kDiv, {span, between}, inner), prefix + ".step");
  const int offset = low.Materialised(
      low.Elementwise(NodeKind::kMul, {low.Count(0, 1, count, inner), step}, inner), prefix + ".offset");
  const int result = low.Elementwise(NodeKind::kAdd, {first, offset}, inner);
  low.at(result).slack = {first, last};
  low.at(result).slack_factor = 8;
  low.at(result).dtype = dtype;
  low.at(result).inner = true;
  return result;
}

/// start, start + step, ... below end.
int LowerArange(Lowering& low, const OpCall& call) {
  const double start = NumberAttr(call.step, "start", 0), end = NumberAttr(call.step, "end", 0),
               step = NumberAttr(call.step, "step", 1);
  const double count = std::ceil((end - start) / step);
  if (!(count >= 0) || count > 1e9) throw LoweringError{"arange: the bounds and the step do not agree"};
  const DType dtype = DTypeAttr(call.step, "dtype").value_or(DType::kInt64);
  return low.Store(low.Count(start, step, static_cast<int64_t>(count), dtype), dtype);
}

int LowerOneHot(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  const auto classes = IntAttr(call.step, "num_classes");
  if (!classes) throw LoweringError{"one_hot needs num_classes"};
  Shape shape = low.at(call.args[0]).shape;
  shape.push_back(1);
  const int numbers = low.Count(0, 1, *classes, DType::kInt64);
  const int hot =
      low.Elementwise(NodeKind::kEqual, {low.Reshape(call.args[0], shape), numbers}, DType::kBool);
  return low.Store(hot, DType::kInt64);
}

}  // namespace ulpscope
