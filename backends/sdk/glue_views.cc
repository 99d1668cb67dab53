// Glue: transposing, reshaping, selecting, broadcasting; copies of bits, no arithmetic.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "backends/sdk/glue.h"

namespace ulpscope::sdk {
namespace {

StepResult FromResult(Result<TensorData> result) {
  if (result) return std::move(*result);
  return StepUnsupported(result.error().message);
}

Result<size_t> Axis(int64_t dim, size_t rank) {
  const int64_t axis = dim < 0 ? dim + static_cast<int64_t>(rank) : dim;
  if (axis < 0 || axis >= static_cast<int64_t>(rank))
    return Fail("dimension " + std::to_string(dim) + " out of range");
  return static_cast<size_t>(axis);
}

Result<TensorData> Transpose(const Step& step, const TensorData& a) {
  std::vector<size_t> order(a.shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (step.op == "t") {
    if (a.shape.size() > 2) return Fail("t() expects a tensor with <= 2 dimensions");
    std::reverse(order.begin(), order.end());
    return Permuted(a, order);
  }
  const int64_t dim0 = ULPSCOPE_TRY(ReadInt(step, "dim0"));
  const int64_t dim1 = ULPSCOPE_TRY(ReadInt(step, "dim1"));
  const size_t axis0 = ULPSCOPE_TRY(Axis(dim0, a.shape.size()));
  const size_t axis1 = ULPSCOPE_TRY(Axis(dim1, a.shape.size()));
  std::swap(order[axis0], order[axis1]);
  return Permuted(a, order);
}

Result<TensorData> Permute(const Step& step, const TensorData& a) {
  const Shape dims = ULPSCOPE_TRY(ReadInts(step, "dims"));
  std::vector<size_t> order;
  for (const int64_t dim : dims) {
    const size_t axis = ULPSCOPE_TRY(Axis(dim, a.shape.size()));
    if (std::ranges::count(order, axis) > 0) return Fail("permute: a dimension twice");
    order.push_back(axis);
  }
  if (order.size() != a.shape.size()) return Fail("permute: not all dimensions named");
  return Permuted(a, order);
}

Result<TensorData> Reshape(const Step& step, const TensorData& a) {
  Shape shape = ULPSCOPE_TRY(ReadInts(step, "shape"));
  int64_t known = 1;
  int64_t* inferred = nullptr;
  for (int64_t& extent : shape) {
    if (extent == -1 && inferred == nullptr) {
      inferred = &extent;
    } else if (extent < 0) {
      return Fail("reshape: bad extent " + std::to_string(extent));
    } else {
      known *= extent;
    }
  }
  if (inferred != nullptr) {
    if (known == 0 || a.size() % known != 0) return Fail("reshape: the -1 extent cannot be inferred");
    *inferred = a.size() / known;
  }
  if (ElementCount(shape) != a.size()) return Fail("reshape: the shapes hold different numbers of elements");
  return TensorData{.dtype = a.dtype, .shape = std::move(shape), .bytes = a.bytes};
}

Result<TensorData> Expand(const Step& step, const TensorData& a) {
  Shape shape = ULPSCOPE_TRY(ReadInts(step, "shape"));
  if (shape.size() < a.shape.size()) return Fail("expand: fewer dimensions than the tensor has");
  const size_t lead = shape.size() - a.shape.size();
  for (size_t axis = 0; axis < a.shape.size(); ++axis) {
    int64_t& extent = shape[lead + axis];
    if (extent == -1) extent = a.shape[axis];
    if (extent != a.shape[axis] && a.shape[axis] != 1) return Fail("expand: a dimension that is not 1");
  }
  return BroadcastTo(a, shape);
}

Result<TensorData> SelectOrSqueeze(const Step& step, const TensorData& a) {
  Shape shape = a.shape;
  const auto reshaped = [&] { return TensorData{.dtype = a.dtype, .shape = shape, .bytes = a.bytes}; };
  if (step.op == "squeeze" && step.Find("dim") == nullptr) {
    std::erase(shape, 1);
    return reshaped();
  }
  const int64_t dim = ULPSCOPE_TRY(ReadInt(step, "dim"));
  const size_t axis = ULPSCOPE_TRY(Axis(dim, a.shape.size() + (step.op == "unsqueeze" ? 1 : 0)));
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  if (step.op == "unsqueeze") {
    shape.insert(at, 1);
    return reshaped();
  }
  if (step.op == "squeeze") {
    if (*at == 1) shape.erase(at);
    return reshaped();
  }
  const int64_t index = ULPSCOPE_TRY(ReadInt(step, "index"));
  const int64_t picked = index < 0 ? index + *at : index;
  if (picked < 0 || picked >= *at) return Fail("select: index out of range");
  std::vector<size_t> order = {axis};
  for (size_t i = 0; i < a.shape.size(); ++i) {
    if (i != axis) order.push_back(i);
  }
  const TensorData front = Permuted(a, order);
  shape.erase(at);
  TensorData result = TensorData::Zeros(a.dtype, std::move(shape));
  std::copy_n(front.bytes.begin() + picked * static_cast<std::ptrdiff_t>(result.bytes.size()),
              result.bytes.size(), result.bytes.begin());
  return result;
}

}  // namespace

StepResult GlueView(const Step& step, GlueContext& context) {
  const TensorData* a = step.of.size() == 1 ? context.Tensor(step.of[0]) : nullptr;
  if (a == nullptr) return StepUnsupported("step " + step.op + ": needs one tensor");
  if (step.op == "transpose" || step.op == "t") return FromResult(Transpose(step, *a));
  if (step.op == "permute") return FromResult(Permute(step, *a));
  if (step.op == "reshape" || step.op == "view") return FromResult(Reshape(step, *a));
  if (step.op == "expand") return FromResult(Expand(step, *a));
  return FromResult(SelectOrSqueeze(step, *a));
}

namespace {

/// The elements that `strides` place at the coordinates of `shape`.
TensorData Arranged(const TensorData& tensor, const Shape& shape, const std::vector<int64_t>& strides) {
  const size_t rank = shape.size();
  TensorData result = TensorData::Zeros(tensor.dtype, shape);
  const size_t size = SizeOf(tensor.dtype);
  std::vector<int64_t> at(rank, 0);
  int64_t source = 0;
  for (int64_t i = 0; i < result.size(); ++i) {
    std::memcpy(result.bytes.data() + static_cast<size_t>(i) * size,
                tensor.bytes.data() + static_cast<size_t>(source) * size, size);
    for (size_t axis = rank; axis-- > 0;) {
      source += strides[axis];
      if (++at[axis] < shape[axis]) break;
      source -= strides[axis] * shape[axis];
      at[axis] = 0;
    }
  }
  return result;
}

}  // namespace

TensorData Permuted(const TensorData& tensor, const std::vector<size_t>& order) {
  const size_t rank = tensor.shape.size();
  std::vector<int64_t> own(rank, 1), strides(rank);
  for (size_t axis = rank; axis-- > 1;) own[axis - 1] = own[axis] * tensor.shape[axis];
  Shape shape(rank);
  for (size_t axis = 0; axis < rank; ++axis) {
    shape[axis] = tensor.shape[order[axis]];
    strides[axis] = own[order[axis]];
  }
  return Arranged(tensor, shape, strides);
}

std::optional<Shape> BroadcastShape(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape shape = longer;
  const size_t lead = longer.size() - shorter.size();
  for (size_t axis = 0; axis < shorter.size(); ++axis) {
    int64_t& extent = shape[lead + axis];
    if (extent == 1) extent = shorter[axis];
    if (shorter[axis] != 1 && shorter[axis] != extent) return std::nullopt;
  }
  return shape;
}

TensorData BroadcastTo(const TensorData& tensor, const Shape& shape) {
  if (tensor.shape == shape) return tensor;
  const size_t rank = shape.size();
  const size_t lead = rank - tensor.shape.size();
  std::vector<int64_t> strides(rank, 0);  // 0 where an axis is repeated
  int64_t stride = 1;
  for (size_t axis = tensor.shape.size(); axis-- > 0;) {
    if (tensor.shape[axis] != 1) strides[lead + axis] = stride;
    stride *= tensor.shape[axis];
  }
  return Arranged(tensor, shape, strides);
}

}  // namespace ulpscope::sdk
