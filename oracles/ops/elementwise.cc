// Pointwise ops and casts.
#include "oracles/ops/table.h"

namespace ulpscope {
namespace {

void Need(const OpCall& call, size_t count) {
  if (call.args.size() != count)
    throw LoweringError{call.step.op + ": needs " + std::to_string(count) + " operand(s)"};
}

int Scaled(Lowering& low, const OpCall& call, int node) {
  const double alpha = NumberAttr(call.step, "alpha", 1);
  if (alpha == 1) return node;
  // A Python scalar like any other: backends convert it as they like.
  const int factor = low.PythonScalar(alpha, low.at(node).dtype, call.step.op);
  const int scaled = low.Elementwise(NodeKind::kMul, {node, factor});
  low.at(scaled).inner = true;
  return scaled;
}

int Binary(Lowering& low, const OpCall& call, NodeKind kind, int a, int b) {
  Need(call, 2);
  // A Python scalar never decides the type next to a tensor.
  std::optional<DType> dtype;
  if (call.is_scalar[0] != call.is_scalar[1])
    dtype = low.at(call.is_scalar[0] ? call.args[1] : call.args[0]).dtype;
  return low.Elementwise(kind, {a, b}, dtype);
}

}  // namespace

int LowerAdd(Lowering& low, const OpCall& call) {
  Need(call, 2);
  return Binary(low, call, NodeKind::kAdd, call.args[0], Scaled(low, call, call.args[1]));
}
int LowerSub(Lowering& low, const OpCall& call) {
  Need(call, 2);
  return Binary(low, call, NodeKind::kSub, call.args[0], Scaled(low, call, call.args[1]));
}
int LowerMul(Lowering& low, const OpCall& call) {
  Need(call, 2);
  return Binary(low, call, NodeKind::kMul, call.args[0], call.args[1]);
}
int LowerDiv(Lowering& low, const OpCall& call) {
  Need(call, 2);
  return Binary(low, call, NodeKind::kDiv, call.args[0], call.args[1]);
}
/// The choice rounds nothing; only the output rounding of its result does, whatever was chosen.
int LowerWhere(Lowering& low, const OpCall& call) {
  Need(call, 3);
  const int condition = call.args[0];
  if (low.at(condition).dtype != DType::kBool) throw LoweringError{"where: the condition is no bool tensor"};
  std::optional<DType> dtype;
  if (call.is_scalar[1] != call.is_scalar[2]) dtype = low.at(call.args[call.is_scalar[1] ? 2 : 1]).dtype;
  const int chosen = low.Elementwise(NodeKind::kChoose, {call.args[1], call.args[2], condition}, dtype);
  return low.Store(chosen, low.at(chosen).dtype);
}
int LowerNeg(Lowering& low, const OpCall& call) {
  Need(call, 1);
  return low.Elementwise(NodeKind::kNeg, {call.args[0]});
}
int LowerRelu(Lowering& low, const OpCall& call) {
  Need(call, 1);
  return low.Elementwise(NodeKind::kRelu, {call.args[0]});
}
int LowerSqrt(Lowering& low, const OpCall& call) {
  Need(call, 1);
  return low.Elementwise(NodeKind::kSqrt, {call.args[0]});
}
int LowerRsqrt(Lowering& low, const OpCall& call) {
  Need(call, 1);
  return low.Elementwise(NodeKind::kRsqrt, {call.args[0]});
}

int LowerCast(Lowering& low, const OpCall& call) {
  Need(call, 1);
  const auto dtype = DTypeAttr(call.step, "dtype");
  if (!dtype) throw LoweringError{"cast needs dtype"};
  int x = call.args[0];
  const bool floating = IsFloating(low.at(x).dtype);
  // Whole numbers lose the fraction; of booleans every number but 0 is true.
  if (*dtype == DType::kBool && low.at(x).dtype != DType::kBool)
    return low.Elementwise(NodeKind::kNot, {low.Elementwise(NodeKind::kNot, {x}, DType::kBool)},
                           DType::kBool);
  if (!IsFloating(*dtype) && floating) x = low.Elementwise(NodeKind::kTrunc, {x});
  return low.Cast(x, *dtype);
}

/// A clone is a new node (a non-leaf), with the same value.
int LowerClone(Lowering& low, const OpCall& call) {
  Need(call, 1);
  return low.Reshape(call.args[0], low.at(call.args[0]).shape);
}

int LowerDetach(Lowering& low, const OpCall& call) {
  const int node = LowerClone(low, call);
  low.needs_grad[static_cast<size_t>(node)] = false;
  return node;
}

int LowerEmpty(Lowering& low, const OpCall& call) { return LowerFull(low, call); }

int LowerFull(Lowering& low, const OpCall& call) {
  const DType dtype = DTypeAttr(call.step, "dtype").value_or(DType::kFloat32);
  const double value = call.step.op == "ones"   ? 1
                       : call.step.op == "full" ? NumberAttr(call.step, "value", 0)
                                                : 0;
  return low.Expand(low.Scalar(value, dtype), IntsAttr(call.step, "shape"));
}

}  // namespace ulpscope
