// Transcendental functions and activations.
//
// exp, tanh and the like are one step each: every framework evaluates them in one kernel. sigmoid, silu and
// gelu are composites, since some backends (jax, op by op or compiled) round between their steps. The slack
// of a step bounds what the other algebraic forms differ by, in units of the format that they compute in: 1 +
// erf cancels for negative arguments where erfc does not.
#include "oracles/ops/composite.h"

namespace ulpscope {
namespace {

int Unary(Lowering& low, const OpCall& call, NodeKind kind) {
  NeedOperands(call, 1, 1);
  return low.Elementwise(kind, {call.args[0]}, FloatingOf(low.at(call.args[0]).dtype));
}

/// 1 / (1 + exp(-x)); the last step is left to be named.
int SigmoidSteps(Lowering& low, Composite& op, int x) {
  const int one = low.Scalar(1, op.inner());
  const int exp = op.Stored(NodeKind::kExp, {op.Step(NodeKind::kNeg, {x}, "minus")}, "exp");
  const int result =
      op.Stored(NodeKind::kDiv, {one, op.Stored(NodeKind::kAdd, {one, exp}, "sum")}, "sigmoid");
  return op.Slack(result, {result}, 8);
}

/// x/2 erfc(-x/sqrt(2)).
int ErfGelu(Lowering& low, const OpCall& call) {
  Composite op(low, call);
  const int x = call.args.at(0);
  const int factor =
      op.Stored(NodeKind::kStore, {low.IrrationalConstant(Irrational::kSqrtHalf, op.inner())}, "sqrt_half");
  const int argument =
      op.Stored(NodeKind::kMul, {op.Step(NodeKind::kNeg, {x}, "minus"), factor}, "argument_of_erf");
  const int tail = op.Slack(op.Stored(NodeKind::kErfc, {argument}, "erfc"), {low.Scalar(1, op.inner())}, 16);
  const int half = op.Step(NodeKind::kMul, {x, low.Scalar(0.5, op.inner())}, "half");
  const int result = op.Step(NodeKind::kMul, {half, tail}, "result");
  return op.Result(op.Slack(result, {result}, 4));
}

/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel, 2016).
int TanhGelu(Lowering& low, const OpCall& call) {
  Composite op(low, call);
  const int x = call.args.at(0);
  const int cube = op.Step(NodeKind::kMul, {op.Step(NodeKind::kMul, {x, x}, "square"), x}, "cube");
  const int small = op.Step(
      NodeKind::kMul,
      {cube, op.Step(NodeKind::kStore, {low.Constant(44715, 1000000, op.inner())}, "cubic_factor")}, "cubic");
  const int sum = op.Step(NodeKind::kAdd, {x, small}, "sum");
  const int argument = op.Slack(
      op.Step(NodeKind::kMul,
              {op.Step(NodeKind::kStore, {low.IrrationalConstant(Irrational::kSqrtTwoOverPi, op.inner())},
                       "sqrt_two_over_pi"),
               sum},
              "argument_of_tanh"),
      {sum}, 8);
  const int one = low.Scalar(1, op.inner());
  const int tail = op.Slack(
      op.Stored(NodeKind::kAdd, {op.Step(NodeKind::kTanh, {argument}, "tanh"), one}, "one_plus_tanh"), {one},
      16);
  const int half = op.Step(NodeKind::kMul, {x, low.Scalar(0.5, op.inner())}, "half");
  const int result = op.Step(NodeKind::kMul, {half, tail}, "result");
  return op.Result(op.Slack(result, {result}, 4));
}

}  // namespace

int LowerExp(Lowering& low, const OpCall& call) { return Unary(low, call, NodeKind::kExp); }
int LowerExpm1(Lowering& low, const OpCall& call) { return Unary(low, call, NodeKind::kExpm1); }
int LowerLog(Lowering& low, const OpCall& call) { return Unary(low, call, NodeKind::kLog); }
int LowerLog1p(Lowering& low, const OpCall& call) { return Unary(low, call, NodeKind::kLog1p); }
int LowerSin(Lowering& low, const OpCall& call) { return Unary(low, call, NodeKind::kSin); }
int LowerCos(Lowering& low, const OpCall& call) { return Unary(low, call, NodeKind::kCos); }
int LowerTanh(Lowering& low, const OpCall& call) { return Unary(low, call, NodeKind::kTanh); }
int LowerErf(Lowering& low, const OpCall& call) { return Unary(low, call, NodeKind::kErf); }
int LowerErfc(Lowering& low, const OpCall& call) { return Unary(low, call, NodeKind::kErfc); }

/// exp(x ln 2), as in stacks that have no exp2; one step in others, which the slack covers: the argument's error is
/// multiplied by its magnitude.
int LowerExp2(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  Composite op(low, call);
  const int x = call.args[0];
  const int ln2 = op.Stored(NodeKind::kStore, {low.IrrationalConstant(Irrational::kLn2, op.inner())}, "ln2");
  const int scaled = op.Stored(NodeKind::kMul, {x, ln2}, "scaled");
  const int result = op.Step(NodeKind::kExp, {scaled}, "result");
  // Separate from the result itself, which has the slack.
  const int again = low.Elementwise(NodeKind::kExp, {scaled}, op.inner());
  const int far =
      low.Elementwise(NodeKind::kMul, {low.Elementwise(NodeKind::kAbs, {scaled}), again}, op.inner());
  return op.Result(op.Slack(result, {result, far}, 4));
}

/// log(x) / ln 2.
int LowerLog2(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  Composite op(low, call);
  const int ln2 = op.Stored(NodeKind::kStore, {low.IrrationalConstant(Irrational::kLn2, op.inner())}, "ln2");
  const int log = op.Stored(NodeKind::kLog, {call.args[0]}, "log");
  const int result = op.Step(NodeKind::kDiv, {log, ln2}, "result");
  return op.Result(op.Slack(result, {result}, 8));
}

int LowerSinh(Lowering& low, const OpCall& call) { return Unary(low, call, NodeKind::kSinh); }
int LowerCosh(Lowering& low, const OpCall& call) { return Unary(low, call, NodeKind::kCosh); }
int LowerAbs(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  return low.Elementwise(NodeKind::kAbs, {call.args[0]});
}

int LowerGelu(Lowering& low, const OpCall& call) {
  const std::string form = TextAttr(call.step, "approximate", "none");
  if (form != "none" && form != "tanh") throw LoweringError{"gelu: approximate is none or tanh"};
  return form == "tanh" ? TanhGelu(low, call) : ErfGelu(low, call);
}

int LowerSigmoid(Lowering& low, const OpCall& call) {
  Composite op(low, call);
  return op.Result(SigmoidSteps(low, op, call.args.at(0)));
}

/// x sigmoid(x).
int LowerSilu(Lowering& low, const OpCall& call) {
  Composite op(low, call);
  const int x = call.args.at(0);
  const int result = op.Step(NodeKind::kMul, {x, SigmoidSteps(low, op, x)}, "result");
  return op.Result(op.Slack(result, {result}, 8));
}

/// a sigmoid(b), with a and b the halves of x.
int LowerGlu(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  Composite op(low, call);
  const int x = call.args[0];
  const int64_t dim = IntAttr(call.step, "dim").value_or(-1),
                rank = static_cast<int64_t>(low.at(x).shape.size());
  const int64_t axis = dim < 0 ? dim + rank : dim;
  if (axis < 0 || axis >= rank) throw LoweringError{"glu: dimension out of range"};
  const int64_t extent = low.at(x).shape[static_cast<size_t>(axis)];
  if (extent % 2 != 0) throw LoweringError{"glu: the dimension has no halves"};
  const int a = low.Slice(x, axis, 0, extent / 2, 1), b = low.Slice(x, axis, extent / 2, extent, 1);
  const int gate = SigmoidSteps(low, op, b);
  const int result = op.Step(NodeKind::kMul, {a, gate}, "result");
  return op.Result(op.Slack(result, {result}, 8));
}

}  // namespace ulpscope
