// The op table.
#include "harness/casefile/ops.h"

namespace ulpscope {
namespace {

using enum Presence;

const Type& Integers() {
  static const Type type{.kind = Type::Kind::kList,
                         .what = "a list of integers",
                         .definition = "integers",
                         .item = &IntegerType()};
  return type;
}
const Type& Dims() {
  static const Type type{.kind = Type::Kind::kEither,
                         .what = "a dimension or a list of dimensions",
                         .scalar = &IntegerType(),
                         .list = &Integers()};
  return type;
}
const Type& NewShape() {
  static const Type extent{
      .kind = Type::Kind::kInteger, .what = "an extent, or -1", .low = -1, .high = int64_t{1} << 28};
  static const Type type{
      .kind = Type::Kind::kList, .what = "a shape, a list of extents", .item = &extent, .max_items = 16};
  return type;
}
const Type& ValueName() {
  static const Type type{.kind = Type::Kind::kText,
                         .what = "the name of a value",
                         .definition = "value_name",
                         .pattern = &NamePattern()};
  return type;
}
const Type& Device() {
  static const Type type{
      .kind = Type::Kind::kWord, .what = "a device", .words = {"auto", "cpu", "cuda", "xla"}};
  return type;
}
const Type& GeluForm() {
  static const Type type{.kind = Type::Kind::kWord, .what = "a form of gelu", .words = {"none", "tanh"}};
  return type;
}
const Type& SetDataTo() {
  static const Type type{.kind = Type::Kind::kMap,
                         .what = "what set_data sets, {cast: DTYPE} or {value: NAME}",
                         .fields = {{"cast", &DTypeType(), kOptional, "w.data = w.data.to(dtype)"},
                                    {"value", &ValueName(), kOptional, "w.data = value"}},
                         .exactly_keys = 1};
  return type;
}

std::vector<OpRow> MakeRows() {
  using enum OpRow::Result;
  using enum OpRow::Out;
  const Field shape{"shape", &ShapeType(), kRequired, "extents"};
  const Field new_shape{"shape", &NewShape(), kRequired, "extents; -1 is worked out"};
  const Field dtype{"dtype", &DTypeType(), kRequired, "dtype of the result"};
  const Field maybe_dtype{"dtype", &DTypeType(), kOptional, "dtype to compute and give the result in"};
  const Field out_dtype{"out_dtype", &DTypeType(), kOptional, "PyTorch's out_dtype="};
  const Field preferred{"preferred_element_type", &DTypeType(), kOptional, "JAX's dtype of the product"};
  const Field alpha{"alpha", &NumberType(), kOptional, "factor"};
  const Field beta{"beta", &NumberType(), kOptional, "factor of the addend"};
  const Field dim{"dim", &IntegerType(), kRequired, "dimension"};
  const Field maybe_dim{"dim", &Dims(), kOptional, "dimensions; all without"};
  const Field keepdim{"keepdim", &BooleanType(), kOptional, "keep reduced dimensions as 1"};
  const Field eps{"eps", &NumberType(), kOptional, "added to the variance"};
  const Field normalized{"normalized_shape", &ShapeType(), kRequired, "the trailing extents"};
  const Field dim0{"dim0", &IntegerType(), kRequired, "dimension"};
  const Field dim1{"dim1", &IntegerType(), kRequired, "dimension"};
  const Field overwrite{"overwrite", &BooleanType(), kRequired,
                        "false: .data is cast; true: the parameter is replaced"};
  const Field grad{"grad", &ValueName(), kOptional, "gradient of the loss; ones without"};
  const Field retain_graph{"retain_graph", &BooleanType(), kOptional, "keep the graph for another backward"};
  const Field device{"device", &Device(), kOptional, "auto follows the backend"};
  const Field lower_dtype{"dtype", &DTypeType(), kOptional, "the lower dtype (bfloat16)"};
  const Field enabled{"enabled", &BooleanType(), kOptional, "false switches an outer autocast off"};
  const Field cache{"cache", &BooleanType(), kOptional, "keep the casts of leaf weights (true)"};
  return {
      {"empty", 0, 0, kValue, kNo, {shape, dtype}},
      {"zeros", 0, 0, kValue, kNo, {shape, dtype}},
      {"ones", 0, 0, kValue, kNo, {shape, dtype}},
      {"full", 0, 0, kValue, kNo, {shape, dtype, {"value", &NumberType(), kRequired, "every element"}}},
      {"matmul", 2, 2, kValue, kYes, {out_dtype, preferred}},
      {"mm", 2, 2, kValue, kYes, {out_dtype, preferred}},
      {"bmm", 2, 2, kValue, kYes, {out_dtype, preferred}},
      {"addmm", 3, 3, kValue, kYes, {alpha, beta, out_dtype}},
      {"baddbmm", 3, 3, kValue, kYes, {alpha, beta, out_dtype}},
      {"linear", 2, 3, kValue, kNo, {}},
      {"fsdp_linear",
       2,
       3,
       kValue,
       kNo,
       {{"compute_dtype", &DTypeType(), kRequired, "dtype that input and parameters are cast to"},
        {"reduce_dtype", &DTypeType(), kOptional, "dtype of the gradient reduction (compute_dtype)"}}},
      {"add", 2, 2, kValue, kYes, {alpha}},
      {"sub", 2, 2, kValue, kYes, {alpha}},
      {"mul", 2, 2, kValue, kYes, {}},
      {"div", 2, 2, kValue, kYes, {}},
      {"neg", 1, 1, kValue, kYes, {}},
      {"relu", 1, 1, kValue, kNo, {}},
      {"sqrt", 1, 1, kValue, kYes, {}},
      {"rsqrt", 1, 1, kValue, kYes, {}},
      {"exp", 1, 1, kValue, kYes, {}},
      {"expm1", 1, 1, kValue, kYes, {}},
      {"log", 1, 1, kValue, kYes, {}},
      {"log1p", 1, 1, kValue, kYes, {}},
      {"sin", 1, 1, kValue, kYes, {}},
      {"cos", 1, 1, kValue, kYes, {}},
      {"tanh", 1, 1, kValue, kYes, {}},
      {"sigmoid", 1, 1, kValue, kYes, {}},
      {"erf", 1, 1, kValue, kYes, {}},
      {"erfc", 1, 1, kValue, kYes, {}},
      {"abs", 1, 1, kValue, kYes, {}},
      {"gelu",
       1,
       1,
       kValue,
       kNo,
       {{"approximate", &GeluForm(), kOptional, "none (erf, the default) or tanh"}}},
      {"silu", 1, 1, kValue, kNo, {}},
      {"softmax", 1, 1, kValue, kNo, {dim, maybe_dtype}},
      {"log_softmax", 1, 1, kValue, kNo, {dim, maybe_dtype}},
      {"logsumexp", 1, 1, kValue, kYes, {dim, keepdim}},
      {"amax", 1, 1, kValue, kYes, {maybe_dim, keepdim}},
      {"clone", 1, 1, kValue, kNo, {}},
      {"detach", 1, 1, kValue, kNo, {}},
      {"sum", 1, 1, kValue, kYes, {maybe_dim, keepdim, maybe_dtype}},
      {"mean", 1, 1, kValue, kYes, {maybe_dim, keepdim, maybe_dtype}},
      {"cast", 1, 1, kValue, kNo, {dtype}},
      {"layer_norm", 1, 3, kValue, kNo, {normalized, eps}},
      {"rms_norm",
       1,
       2,
       kValue,
       kNo,
       {normalized, {"eps", &NumberType(), kRequired, "added to the mean square"}}},
      {"transpose", 1, 1, kValue, kNo, {dim0, dim1}},
      {"t", 1, 1, kValue, kNo, {}},
      {"reshape", 1, 1, kValue, kNo, {new_shape}},
      {"view", 1, 1, kValue, kNo, {new_shape}},
      {"expand", 1, 1, kValue, kNo, {new_shape}},
      {"permute", 1, 1, kValue, kNo, {{"dims", &Integers(), kRequired, "the new order of dimensions"}}},
      {"select", 1, 1, kValue, kNo, {dim, {"index", &IntegerType(), kRequired, "which slice"}}},
      {"unsqueeze", 1, 1, kValue, kNo, {dim}},
      {"squeeze", 1, 1, kValue, kNo, {{"dim", &Dims(), kOptional, "dimensions; all of extent 1 without"}}},
      {"set_data", 1, 1, kEffect, kNo, {{"to", &SetDataTo(), kRequired, "what w.data becomes"}}},
      {"module_to", 1, 1, kEffect, kNo, {dtype, overwrite}},
      {"backward", 1, 1, kEffect, kNo, {grad, retain_graph}},
      {"autocast", 0, 0, kScope, kNo, {device, lower_dtype, enabled, cache}},
      {"no_grad", 0, 0, kScope, kNo, {}},
      {"enable_grad", 0, 0, kScope, kNo, {}},
      {"sync", 0, 0, kEffect, kNo, {}},
  };
}

}  // namespace

std::span<const OpRow> Ops() {
  static const std::vector<OpRow> rows = MakeRows();
  return rows;
}

const OpRow* FindOp(std::string_view name) {
  for (const OpRow& row : Ops()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

bool IsAtenOp(std::string_view name) { return OpPattern().matches(name); }

}  // namespace ulpscope
