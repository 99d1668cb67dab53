// Transcendental functions and activations.
//
// exp, tanh and the like are one step each: every framework evaluates them in one kernel. sigmoid, silu and
// gelu are composites, since some backends (jax, op by op or compiled) round between their steps. The slack
// of a step bounds what the other algebraic forms differ by, in units of the format that they compute in: 1 +
// erf cancels for negative arguments where erfc does not.
#include "oracles/ops/table.h"

namespace ulpscope {
namespace {

int Unary(Lowering& low, const OpCall& call, NodeKind kind) {
  if (call.args.size() != 1) throw LoweringError{call.step.op + ": needs 1 operand"};
  return low.Elementwise(kind, {call.args[0]});
}

/// The steps of one composite op: each in the op's compute format, under a name of its own.
class Composite {
 public:
  Composite(Lowering& low, const OpCall& call)
      : low_(low),
        prefix_(call.step.as.empty() ? call.step.op : call.step.as),
        own_(low.at(call.args.at(0)).dtype) {}

  DType inner() const { return own_ == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }
  int Step(NodeKind kind, std::vector<int> args, const char* part) {
    return low_.Inner(low_.Elementwise(kind, std::move(args), inner()), prefix_ + "." + part);
  }
  /// A step that some framework stores.
  int Stored(NodeKind kind, std::vector<int> args, const char* part) {
    return low_.Materialised(low_.Elementwise(kind, std::move(args), inner()), prefix_ + "." + part);
  }
  /// A constant, converted to the format of the steps.
  int Held(int constant, const char* part) {
    return low_.Inner(low_.Store(constant, inner()), prefix_ + "." + part);
  }
  int StoredConstant(int constant, const char* part) {
    return low_.Materialised(low_.Store(constant, inner()), prefix_ + "." + part);
  }
  int Slack(int node, std::vector<int> nodes, double factor) {
    low_.at(node).slack = std::move(nodes);
    low_.at(node).slack_factor = factor;
    return node;
  }
  int Result(int node) {
    low_.at(node).name.clear();
    low_.at(node).materialised = false;
    low_.at(node).dtype = own_;
    return node;
  }

 private:
  Lowering& low_;
  std::string prefix_;
  DType own_;
};

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
      op.StoredConstant(low.IrrationalConstant(Irrational::kSqrtHalf, op.inner()), "sqrt_half");
  const int argument = op.Step(NodeKind::kMul, {op.Step(NodeKind::kNeg, {x}, "minus"), factor}, "argument");
  const int tail = op.Slack(op.Stored(NodeKind::kErfc, {argument}, "tail"), {low.Scalar(1, op.inner())}, 16);
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
      NodeKind::kMul, {cube, op.Held(low.Constant(44715, 1000000, op.inner()), "cubic_factor")}, "cubic");
  const int sum = op.Step(NodeKind::kAdd, {x, small}, "sum");
  const int argument = op.Slack(
      op.Step(
          NodeKind::kMul,
          {op.Held(low.IrrationalConstant(Irrational::kSqrtTwoOverPi, op.inner()), "sqrt_two_over_pi"), sum},
          "argument"),
      {sum}, 8);
  const int one = low.Scalar(1, op.inner());
  const int tail = op.Slack(
      op.Stored(NodeKind::kAdd, {op.Step(NodeKind::kTanh, {argument}, "tanh"), one}, "tail"), {one}, 16);
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
int LowerAbs(Lowering& low, const OpCall& call) { return Unary(low, call, NodeKind::kAbs); }

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

}  // namespace ulpscope
