// Glue: the steps themselves, each element exact and rounded once.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "backends/sdk/exact.h"
#include "backends/sdk/glue.h"
#include "backends/sdk/promotion.h"

namespace ulpscope::sdk {
namespace {

/// The value of one element without any rounding: an int64 may need both halves.
TwoDoubles ExactElement(const TensorData& tensor, int64_t index) {
  if (tensor.dtype != DType::kInt64) return {tensor.At(index), 0};
  int64_t value = 0;
  std::memcpy(&value, tensor.bytes.data() + static_cast<size_t>(index) * sizeof(value), sizeof(value));
  // 2^63 as a double is no int64, so the halves are split in integers: both are exact doubles.
  const int64_t low = value & 0x7ff;
  return ExactSum(static_cast<double>(value - low), static_cast<double>(low));
}

int64_t IntegerElement(const TensorData& tensor, int64_t index) {
  if (tensor.dtype != DType::kInt64) return static_cast<int64_t>(tensor.At(index));
  int64_t value = 0;
  std::memcpy(&value, tensor.bytes.data() + static_cast<size_t>(index) * sizeof(value), sizeof(value));
  return value;
}

/// Stores the low bits, as integer arithmetic in PyTorch wraps around.
void SetInteger(TensorData& tensor, int64_t index, int64_t value) {
  if (tensor.dtype == DType::kBool) value = value != 0 ? 1 : 0;
  const size_t size = SizeOf(tensor.dtype);
  std::memcpy(tensor.bytes.data() + static_cast<size_t>(index) * size, &value, size);  // little endian
}

void SetRounded(TensorData& tensor, int64_t index, TwoDoubles value) {
  tensor.Set(index, RoundTo(value, *FormatOf(tensor.dtype)));
}

/// A float towards zero; what does not fit (NaN too) becomes the smallest int64, as cvttsd2si has it.
int64_t Truncated(double value) {
  if (!(value > -0x1p63 && value < 0x1p63)) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

/// What promotion needs to know of an operand.
PromotionOperand ForPromotion(const Operand& operand, const GlueContext& context) {
  if (const TensorData* tensor = context.Tensor(operand)) {
    return {.dtype = tensor->dtype,
            .rank = tensor->shape.empty() ? OperandRank::kZeroDim : OperandRank::kTensor};
  }
  const DType dtype = operand.scalar.is_boolean()          ? DType::kBool
                      : operand.scalar.is_number_integer() ? DType::kInt64
                                                           : DType::kFloat64;
  return {.dtype = dtype, .rank = OperandRank::kScalar};
}

/// An operand as a tensor: a Python scalar becomes a 0-dim one, its value unrounded.
TensorData Materialised(const Operand& operand, const GlueContext& context) {
  if (const TensorData* tensor = context.Tensor(operand)) return *tensor;
  const bool integer = operand.scalar.is_number_integer() || operand.scalar.is_boolean();
  TensorData scalar = TensorData::Zeros(integer ? DType::kInt64 : DType::kFloat64, {});
  if (integer) {
    SetInteger(scalar, 0,
               operand.scalar.is_boolean() ? operand.scalar.get<bool>() : operand.scalar.get<int64_t>());
  } else {
    scalar.Set(0, operand.scalar.get<double>());
  }
  return scalar;
}

StepResult FromResult(Result<TensorData> result) {
  if (result) return std::move(*result);
  return StepUnsupported(result.error().message);
}

StepResult BadArity(const Step& step) {
  return StepUnsupported("step " + step.op + ": wrong number or kind of operands for this adapter");
}

// --- making tensors

StepResult Make(const Step& step, const GlueContext& context) {
  Result<Shape> shape = ShapeAttr(step, "shape");
  if (!shape) return StepUnsupported(shape.error().message);
  DType dtype = DType::kFloat32;
  if (step.Has("dtype")) {
    const Result<DType> asked = DTypeAttr(step, "dtype");
    if (!asked) return StepUnsupported(asked.error().message);
    dtype = *asked;
  }
  for (const int64_t extent : *shape) {
    if (extent < 0) return StepRaised("RuntimeError", "negative dimension in shape");
  }
  TensorData made = TensorData::Zeros(dtype, std::move(*shape));
  if (step.op == "empty" && context.poison()) FillPoison(made.bytes, SizeOf(dtype));
  if (step.op == "ones" || step.op == "full") {
    const Result<double> value = step.op == "ones" ? Result<double>(1.0) : FloatAttr(step, "value");
    if (!value) return StepUnsupported(value.error().message);
    for (int64_t i = 0; i < made.size(); ++i) {
      if (IsFloating(dtype)) {
        SetRounded(made, i, {*value, 0});
      } else {
        SetInteger(made, i, Truncated(*value));
      }
    }
  }
  return made;
}

// --- elementwise

TwoDoubles BinaryExact(const std::string& op, double a, double b, double alpha) {
  if (op == "mul") return ExactProduct(a, b);
  if (op == "div") return Quotient(a, b);
  const double sign = op == "sub" ? -alpha : alpha;
  if (sign == 1 || sign == -1) return ExactSum(a, sign * b);
  const TwoDoubles scaled = ExactProduct(sign, b);
  const std::array<double, 3> terms = {a, scaled.hi, scaled.lo};
  return ExactSum(terms);
}

int64_t BinaryInteger(const std::string& op, int64_t a, int64_t b, int64_t alpha) {
  const auto ua = static_cast<uint64_t>(a);
  const auto ub = static_cast<uint64_t>(b);
  const auto scaled = static_cast<uint64_t>(alpha) * ub;
  const uint64_t result = op == "mul" ? ua * ub : op == "sub" ? ua - scaled : ua + scaled;
  return static_cast<int64_t>(result);
}

StepResult Binary(const Step& step, GlueContext& context) {
  if (step.of.size() != 2) return BadArity(step);
  const std::array<PromotionOperand, 2> ranks = {ForPromotion(step.of[0], context),
                                                 ForPromotion(step.of[1], context)};
  std::optional<DType> dtype = ResultType(ranks);
  if (!dtype) return StepRaised("RuntimeError", "Promotion for Float8 Types is not supported");
  if (step.op == "div" && !IsFloating(*dtype)) dtype = DType::kFloat32;
  TensorData a = Materialised(step.of[0], context);
  TensorData b = Materialised(step.of[1], context);
  const std::optional<Shape> shape = BroadcastShape(a.shape, b.shape);
  if (!shape) {
    return StepRaised("RuntimeError", "shapes " + Describe(a.dtype, a.shape) + " and " +
                                          Describe(b.dtype, b.shape) + " do not broadcast");
  }
  // Operands are rounded to the common dtype before the op, which matters where it is narrower than a 0-dim
  // operand. A Python scalar is not: PyTorch's kernels take it unrounded.
  for (const auto& [operand, tensor] : {std::pair{&step.of[0], &a}, {&step.of[1], &b}}) {
    if (!operand->IsScalar() && tensor->dtype != *dtype && IsFloating(*dtype))
      *tensor = context.Cast(*tensor, *dtype, step.op);
  }
  a = BroadcastTo(a, *shape);
  b = BroadcastTo(b, *shape);
  const Result<double> alpha = FloatAttr(step, "alpha", 1.0);
  if (!alpha) return StepUnsupported(alpha.error().message);
  TensorData result = TensorData::Zeros(*dtype, *shape);
  for (int64_t i = 0; i < result.size(); ++i) {
    if (IsFloating(*dtype)) {
      SetRounded(result, i, BinaryExact(step.op, a.At(i), b.At(i), *alpha));
    } else {
      SetInteger(result, i,
                 BinaryInteger(step.op, IntegerElement(a, i), IntegerElement(b, i), Truncated(*alpha)));
    }
  }
  return result;
}

StepResult Unary(const Step& step, GlueContext& context) {
  const TensorData* a = step.of.size() == 1 ? context.Tensor(step.of[0]) : nullptr;
  if (a == nullptr) return BadArity(step);
  if (step.op == "clone" || step.op == "detach") return *a;
  const bool floating = IsFloating(a->dtype);
  if (!floating && (step.op == "sqrt" || step.op == "rsqrt"))
    return StepUnsupported(step.op + " of integers");
  TensorData result = TensorData::Zeros(a->dtype, a->shape);
  for (int64_t i = 0; i < a->size(); ++i) {
    if (!floating) {
      const int64_t value = IntegerElement(*a, i);
      SetInteger(result, i,
                 step.op == "relu" ? std::max<int64_t>(value, 0) : BinaryInteger("sub", 0, value, 1));
      continue;
    }
    const double value = a->At(i);
    if (step.op == "neg") SetRounded(result, i, {-value, 0});
    if (step.op == "relu") SetRounded(result, i, {value < 0 ? 0.0 : value, 0});
    if (step.op == "sqrt") SetRounded(result, i, SquareRoot(value));
    if (step.op == "rsqrt") SetRounded(result, i, ReciprocalSquareRoot(value));
  }
  return result;
}

StepResult CastStep(const Step& step, GlueContext& context) {
  const TensorData* a = step.of.size() == 1 ? context.Tensor(step.of[0]) : nullptr;
  if (a == nullptr) return BadArity(step);
  const Result<DType> dtype = DTypeAttr(step, "dtype");
  if (!dtype) return StepUnsupported(dtype.error().message);
  return context.Cast(*a, *dtype, "cast");
}

// --- reductions

/// Axes of `dim` (int, list or absent = all), as a mask.
Result<std::vector<bool>> ReducedAxes(const Step& step, size_t rank) {
  std::vector<bool> reduced(rank, !step.Has("dim") || step.attrs["dim"].is_null());
  if (!step.Has("dim") || step.attrs["dim"].is_null()) return reduced;
  const Result<Shape> dims = ShapeAttr(step, "dim");
  if (!dims) return Fail(dims.error());
  for (const int64_t dim : *dims) {
    const int64_t axis = dim < 0 ? dim + static_cast<int64_t>(rank) : dim;
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) return Fail("dim out of range");
    reduced[static_cast<size_t>(axis)] = true;
  }
  return reduced;
}

StepResult Reduce(const Step& step, GlueContext& context) {
  const TensorData* a = step.of.size() == 1 ? context.Tensor(step.of[0]) : nullptr;
  if (a == nullptr) return BadArity(step);
  const Result<std::vector<bool>> reduced = ReducedAxes(step, a->shape.size());
  if (!reduced) return StepRaised("IndexError", reduced.error().message);
  const Result<bool> keepdim = BoolAttr(step, "keepdim", false);
  if (!keepdim) return StepUnsupported(keepdim.error().message);
  DType dtype = a->dtype;
  if (step.Has("dtype") && !step.attrs["dtype"].is_null()) {
    const Result<DType> asked = DTypeAttr(step, "dtype");
    if (!asked) return StepUnsupported(asked.error().message);
    dtype = *asked;
  }
  if (!IsFloating(dtype)) return StepUnsupported(step.op + " of integers");
  const TensorData source = dtype == a->dtype ? *a : context.Cast(*a, dtype, step.op);
  Shape shape;
  std::vector<size_t> kept, gone;
  for (size_t axis = 0; axis < source.shape.size(); ++axis) {
    ((*reduced)[axis] ? gone : kept).push_back(axis);
    if (!(*reduced)[axis]) shape.push_back(source.shape[axis]);
    if ((*reduced)[axis] && *keepdim) shape.push_back(1);
  }
  std::vector<size_t> order = kept;
  order.insert(order.end(), gone.begin(), gone.end());
  const TensorData rows = Permuted(source, order);
  TensorData result = TensorData::Zeros(dtype, shape);
  const int64_t count = result.size() == 0 ? 0 : rows.size() / result.size();
  std::vector<double> terms(static_cast<size_t>(count));
  for (int64_t row = 0; row < result.size(); ++row) {
    for (int64_t k = 0; k < count; ++k) terms[static_cast<size_t>(k)] = rows.At(row * count + k);
    const TwoDoubles sum = ExactSum(terms);
    SetRounded(result, row, step.op == "mean" ? Divide(sum, static_cast<double>(count)) : sum);
  }
  return result;
}

// --- views (copies here)

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
  const Result<int64_t> dim0 = IntAttr(step, "dim0");
  const Result<int64_t> dim1 = IntAttr(step, "dim1");
  if (!dim0) return Fail(dim0.error());
  if (!dim1) return Fail(dim1.error());
  const Result<size_t> axis0 = Axis(*dim0, a.shape.size());
  const Result<size_t> axis1 = Axis(*dim1, a.shape.size());
  if (!axis0) return Fail(axis0.error());
  if (!axis1) return Fail(axis1.error());
  std::swap(order[*axis0], order[*axis1]);
  return Permuted(a, order);
}

Result<TensorData> Permute(const Step& step, const TensorData& a) {
  const Result<Shape> dims = ShapeAttr(step, "dims");
  if (!dims) return Fail(dims.error());
  std::vector<size_t> order;
  for (const int64_t dim : *dims) {
    const Result<size_t> axis = Axis(dim, a.shape.size());
    if (!axis) return Fail(axis.error());
    if (std::count(order.begin(), order.end(), *axis) > 0) return Fail("permute: a dimension twice");
    order.push_back(*axis);
  }
  if (order.size() != a.shape.size()) return Fail("permute: not all dimensions named");
  return Permuted(a, order);
}

Result<TensorData> Reshape(const Step& step, const TensorData& a) {
  Result<Shape> shape = ShapeAttr(step, "shape");
  if (!shape) return Fail(shape.error());
  int64_t known = 1;
  int64_t* inferred = nullptr;
  for (int64_t& extent : *shape) {
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
  if (ElementCount(*shape) != a.size()) return Fail("reshape: the shapes hold different numbers of elements");
  return TensorData{.dtype = a.dtype, .shape = std::move(*shape), .bytes = a.bytes};
}

Result<TensorData> Expand(const Step& step, const TensorData& a) {
  Result<Shape> shape = ShapeAttr(step, "shape");
  if (!shape) return Fail(shape.error());
  if (shape->size() < a.shape.size()) return Fail("expand: fewer dimensions than the tensor has");
  const size_t lead = shape->size() - a.shape.size();
  for (size_t axis = 0; axis < a.shape.size(); ++axis) {
    int64_t& extent = (*shape)[lead + axis];
    if (extent == -1) extent = a.shape[axis];
    if (extent != a.shape[axis] && a.shape[axis] != 1) return Fail("expand: a dimension that is not 1");
  }
  return BroadcastTo(a, *shape);
}

Result<TensorData> SelectOrSqueeze(const Step& step, const TensorData& a) {
  Shape shape = a.shape;
  if (step.op == "squeeze" && !step.Has("dim")) {
    std::erase(shape, 1);
    return TensorData{.dtype = a.dtype, .shape = std::move(shape), .bytes = a.bytes};
  }
  const Result<int64_t> dim = IntAttr(step, "dim");
  if (!dim) return Fail(dim.error());
  const Result<size_t> axis = Axis(*dim, a.shape.size() + (step.op == "unsqueeze" ? 1 : 0));
  if (!axis) return Fail(axis.error());
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(*axis);
  if (step.op == "unsqueeze") {
    shape.insert(at, 1);
    return TensorData{.dtype = a.dtype, .shape = std::move(shape), .bytes = a.bytes};
  }
  if (step.op == "squeeze") {
    if (*at == 1) shape.erase(at);
    return TensorData{.dtype = a.dtype, .shape = std::move(shape), .bytes = a.bytes};
  }
  const Result<int64_t> index = IntAttr(step, "index");
  if (!index) return Fail(index.error());
  const int64_t picked = *index < 0 ? *index + *at : *index;
  if (picked < 0 || picked >= *at) return Fail("select: index out of range");
  std::vector<size_t> order = {*axis};
  for (size_t i = 0; i < a.shape.size(); ++i) {
    if (i != *axis) order.push_back(i);
  }
  const TensorData front = Permuted(a, order);
  shape.erase(at);
  TensorData result = TensorData::Zeros(a.dtype, std::move(shape));
  std::copy_n(front.bytes.begin() + picked * static_cast<std::ptrdiff_t>(result.bytes.size()),
              result.bytes.size(), result.bytes.begin());
  return result;
}

StepResult View(const Step& step, GlueContext& context) {
  const TensorData* a = step.of.size() == 1 ? context.Tensor(step.of[0]) : nullptr;
  if (a == nullptr) return BadArity(step);
  if (step.op == "transpose" || step.op == "t") return FromResult(Transpose(step, *a));
  if (step.op == "permute") return FromResult(Permute(step, *a));
  if (step.op == "reshape" || step.op == "view") return FromResult(Reshape(step, *a));
  if (step.op == "expand") return FromResult(Expand(step, *a));
  return FromResult(SelectOrSqueeze(step, *a));
}

using Handler = std::function<StepResult(const Step&, GlueContext&)>;

/// One row per op; the order is that of the protocol's vocabulary.
const std::vector<std::pair<std::string, Handler>>& Handlers() {
  static const std::vector<std::pair<std::string, Handler>> handlers = [] {
    std::vector<std::pair<std::string, Handler>> rows;
    for (const char* op : {"add", "sub", "mul", "div"}) rows.emplace_back(op, Binary);
    for (const char* op : {"neg", "relu", "sqrt", "rsqrt", "clone", "detach"}) rows.emplace_back(op, Unary);
    for (const char* op : {"sum", "mean"}) rows.emplace_back(op, Reduce);
    rows.emplace_back("cast", CastStep);
    for (const char* op :
         {"transpose", "t", "reshape", "view", "expand", "permute", "select", "unsqueeze", "squeeze"}) {
      rows.emplace_back(op, View);
    }
    return rows;
  }();
  return handlers;
}

bool Makes(const std::string& op) { return op == "empty" || op == "zeros" || op == "ones" || op == "full"; }

}  // namespace

const std::vector<std::string>& GlueOps() {
  static const std::vector<std::string> ops = [] {
    std::vector<std::string> names = {"empty", "zeros", "ones", "full"};
    for (const auto& [name, ignored] : Handlers()) names.push_back(name);
    names.emplace_back("set_data");
    return names;
  }();
  return ops;
}

StepResult GlueStep(const Step& step, GlueContext& context) {
  if (Makes(step.op)) return Make(step, context);
  for (const auto& [name, handler] : Handlers()) {
    if (name == step.op) return handler(step, context);
  }
  if (step.op == "backward") return StepUnsupported("backward: this adapter has no autograd");
  if (IsScope(step.op)) return StepUnsupported("scope '" + step.op + "': this adapter does not have it");
  return StepUnsupported("op '" + step.op + "': this adapter does not have it");
}

TensorData RoundedCopy(const TensorData& tensor, DType dtype) {
  TensorData result = TensorData::Zeros(dtype, tensor.shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (IsFloating(dtype)) {
      SetRounded(result, i, ExactElement(tensor, i));
    } else if (dtype == DType::kBool) {
      SetInteger(result, i, tensor.At(i) != 0 ? 1 : 0);
    } else {
      SetInteger(result, i, IsFloating(tensor.dtype) ? Truncated(tensor.At(i)) : IntegerElement(tensor, i));
    }
  }
  return result;
}

TensorData Permuted(const TensorData& tensor, const std::vector<size_t>& order) {
  const size_t rank = tensor.shape.size();
  std::vector<int64_t> strides(rank, 1);
  for (size_t axis = rank; axis-- > 1;) strides[axis - 1] = strides[axis] * tensor.shape[axis];
  Shape shape(rank);
  for (size_t axis = 0; axis < rank; ++axis) shape[axis] = tensor.shape[order[axis]];
  TensorData result = TensorData::Zeros(tensor.dtype, shape);
  const size_t size = SizeOf(tensor.dtype);
  std::vector<int64_t> at(rank, 0);
  int64_t source = 0;
  for (int64_t i = 0; i < result.size(); ++i) {
    std::memcpy(result.bytes.data() + static_cast<size_t>(i) * size,
                tensor.bytes.data() + static_cast<size_t>(source) * size, size);
    for (size_t axis = rank; axis-- > 0;) {
      source += strides[order[axis]];
      if (++at[axis] < shape[axis]) break;
      source -= strides[order[axis]] * shape[axis];
      at[axis] = 0;
    }
  }
  return result;
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

}  // namespace ulpscope::sdk
