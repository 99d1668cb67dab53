// Glue: the steps themselves, each element exact and rounded once.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "backends/sdk/exact.h"
#include "backends/sdk/glue.h"
#include "harness/words/promotion.h"

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

/// The properties of an operand that promotion depends on.
PromotionOperand ForPromotion(const Operand& operand, const GlueContext& context) {
  if (const TensorData* tensor = context.Tensor(operand)) {
    return {.dtype = tensor->dtype,
            .rank = tensor->shape.empty() ? OperandRank::kZeroDim : OperandRank::kTensor};
  }
  const DType dtype = operand.scalar->If<bool>() != nullptr      ? DType::kBool
                      : operand.scalar->If<int64_t>() != nullptr ? DType::kInt64
                                                                 : DType::kFloat64;
  return {.dtype = dtype, .rank = OperandRank::kScalar};
}

/// An operand as a tensor: a Python scalar becomes a 0-dim one, its value unrounded.
TensorData Materialised(const Operand& operand, const GlueContext& context) {
  if (const TensorData* tensor = context.Tensor(operand)) return *tensor;
  const auto* flag = operand.scalar->If<bool>();
  const auto* integer = operand.scalar->If<int64_t>();
  const bool real = flag == nullptr && integer == nullptr;
  TensorData scalar = TensorData::Zeros(real ? DType::kFloat64 : DType::kInt64, {});
  if (real) {
    scalar.Set(0, operand.scalar->Number().value());
  } else {
    SetInteger(scalar, 0, flag != nullptr ? *flag : *integer);
  }
  return scalar;
}

/// A step that cannot be read is one that this adapter cannot run.
template <class T>
tl::expected<T, StepFailure> OrUnsupported(Result<T> read) {
  if (read) return *std::move(read);
  return StepUnsupported(std::move(read).error().message);
}

/// The attribute `dtype`; without it, `otherwise`.
tl::expected<DType, StepFailure> DTypeOr(const Step& step, DType otherwise) {
  if (step.Find("dtype") == nullptr) return otherwise;
  return OrUnsupported(ReadDType(step, "dtype"));
}

StepResult BadArity(const Step& step) {
  return StepUnsupported("step " + step.op + ": wrong number or kind of operands for this adapter");
}

// --- making tensors

StepResult Make(const Step& step, const GlueContext& context) {
  Shape shape = ULPSCOPE_TRY(OrUnsupported(ReadInts(step, "shape")));
  const DType dtype = ULPSCOPE_TRY(DTypeOr(step, DType::kFloat32));
  for (const int64_t extent : shape) {
    if (extent < 0) return StepRaised("RuntimeError", "negative dimension in shape");
  }
  TensorData made = TensorData::Zeros(dtype, std::move(shape));
  if (step.op == "empty" && context.poison()) FillPoison(made.bytes, SizeOf(dtype));
  if (step.op == "ones" || step.op == "full") {
    const double value =
        ULPSCOPE_TRY(OrUnsupported(step.op == "ones" ? Result<double>(1.0) : ReadNumber(step, "value")));
    for (int64_t i = 0; i < made.size(); ++i) {
      if (IsFloating(dtype)) {
        SetRounded(made, i, {value, 0});
      } else {
        SetInteger(made, i, Truncated(value));
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
  const double alpha = ULPSCOPE_TRY(OrUnsupported(ReadNumber(step, "alpha", 1.0)));
  TensorData result = TensorData::Zeros(*dtype, *shape);
  for (int64_t i = 0; i < result.size(); ++i) {
    if (IsFloating(*dtype)) {
      SetRounded(result, i, BinaryExact(step.op, a.At(i), b.At(i), alpha));
    } else {
      SetInteger(result, i,
                 BinaryInteger(step.op, IntegerElement(a, i), IntegerElement(b, i), Truncated(alpha)));
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
  const DType dtype = ULPSCOPE_TRY(OrUnsupported(ReadDType(step, "dtype")));
  return context.Cast(*a, dtype, "cast");
}

// --- reductions

/// Axes of `dim` (int, list or absent = all), as a mask.
Result<std::vector<bool>> ReducedAxes(const Step& step, size_t rank) {
  std::vector<bool> reduced(rank, step.Find("dim") == nullptr);
  if (step.Find("dim") == nullptr) return reduced;
  const Shape dims = ULPSCOPE_TRY(ReadInts(step, "dim"));
  for (const int64_t dim : dims) {
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
  const bool keepdim = ULPSCOPE_TRY(OrUnsupported(ReadBool(step, "keepdim", false)));
  const DType dtype = ULPSCOPE_TRY(DTypeOr(step, a->dtype));
  if (!IsFloating(dtype)) return StepUnsupported(step.op + " of integers");
  const TensorData source = dtype == a->dtype ? *a : context.Cast(*a, dtype, step.op);
  Shape shape;
  std::vector<size_t> kept, gone;
  for (size_t axis = 0; axis < source.shape.size(); ++axis) {
    ((*reduced)[axis] ? gone : kept).push_back(axis);
    if (!(*reduced)[axis]) shape.push_back(source.shape[axis]);
    if ((*reduced)[axis] && keepdim) shape.push_back(1);
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
      rows.emplace_back(op, GlueView);
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

}  // namespace ulpscope::sdk
