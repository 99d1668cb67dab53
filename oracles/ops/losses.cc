// Losses: what each element loses, then their sum or mean, which PyTorch computes in kernels of their own.
#include "oracles/ops/composite.h"

namespace ulpscope {
namespace {

enum class Over { kNone, kSum, kMean };

Over OverOf(const Step& step) {
  const std::string word = TextAttr(step, "reduction", "mean");
  return word == "none" ? Over::kNone : word == "sum" ? Over::kSum : Over::kMean;
}

/// The result from the loss of each element, which is the last step named so far.
int Reduced(Lowering& low, const OpCall& call, Composite& op, int each) {
  const Over over = OverOf(call.step);
  if (over == Over::kNone) {
    const int root = low.plan.Root(each);
    return RoundsNothing(low.at(root).kind) ? op.Chosen(each) : op.Result(each);
  }
  const int64_t count = low.plan.size(each);
  const int total = low.Inner(low.Sum(each, {}, false, op.inner()), op.Part("total"));
  if (over == Over::kSum) return op.Result(total);
  return op.Result(op.Step(NodeKind::kDiv, {total, low.Constant(count, 1, op.inner())}, "mean"));
}

int Difference(Lowering& low, const OpCall& call, Composite& op) {
  NeedOperands(call, 2, 2);
  if (low.at(call.args[0]).shape != low.at(call.args[1]).shape)
    throw LoweringError{call.step.op + ": input and target differ in shape"};
  return op.Stored(NodeKind::kSub, {call.args[0], call.args[1]}, "difference");
}

/// A parabola within `edge`, a line of the slope `slope` beyond: both losses are this one, in other words.
int Bent(Lowering& low, const OpCall& call, double edge, bool divided) {
  Composite op(low, call, CommonType(low, call, {0, 1}));
  const int difference = Difference(low, call, op);
  const int size = op.Stored(NodeKind::kAbs, {difference}, "size");
  const int end = op.Scalar(edge, call.step.op), half = op.Number(0.5);
  const int square =
      op.Stored(NodeKind::kMul, {op.Stored(NodeKind::kMul, {half, size}, "half"), size}, "square");
  int near = square, far = 0;
  if (divided) {
    near = op.Stored(NodeKind::kDiv, {square, end}, "near");
    far = op.Stored(NodeKind::kSub, {size, op.Step(NodeKind::kMul, {half, end}, "half_edge")}, "far");
  } else {
    const int beyond =
        op.Stored(NodeKind::kSub, {size, op.Step(NodeKind::kMul, {half, end}, "half_edge")}, "beyond");
    far = op.Stored(NodeKind::kMul, {end, beyond}, "far");
  }
  const int within = low.Elementwise(NodeKind::kLess, {size, end}, DType::kBool);
  return Reduced(low, call, op, op.Choose(within, near, far));
}

/// -log_probabilities at the targets. The classes lie along dimension 1, or 0 of a vector.
int AtTargets(Lowering& low, const OpCall& call, Composite& op, int logs) {
  const Shape shape = low.at(logs).shape;
  const int target = call.args[1];
  if (shape.empty() || IsFloating(low.at(target).dtype))
    throw LoweringError{call.step.op + ": needs classes, and targets that are whole numbers"};
  const auto dim = static_cast<int64_t>(shape.size() == 1 ? 0 : 1);
  Shape one = shape;
  one[static_cast<size_t>(dim)] = 1;
  const int taken = low.Gather(logs, dim, low.Reshape(target, one));
  const int each = op.Step(NodeKind::kNeg, {low.Reshape(taken, low.at(target).shape)}, "each");
  return Reduced(low, call, op, each);
}

}  // namespace

int LowerMseLoss(Lowering& low, const OpCall& call) {
  Composite op(low, call, CommonType(low, call, {0, 1}));
  const int difference = Difference(low, call, op);
  return Reduced(low, call, op, op.Stored(NodeKind::kMul, {difference, difference}, "square"));
}

int LowerL1Loss(Lowering& low, const OpCall& call) {
  Composite op(low, call, CommonType(low, call, {0, 1}));
  const int difference = Difference(low, call, op);
  return Reduced(low, call, op, op.Stored(NodeKind::kAbs, {difference}, "size"));
}

int LowerSmoothL1Loss(Lowering& low, const OpCall& call) {
  const double beta = NumberAttr(call.step, "beta", 1);
  return beta == 0 ? LowerL1Loss(low, call) : Bent(low, call, beta, true);
}

int LowerHuberLoss(Lowering& low, const OpCall& call) {
  return Bent(low, call, NumberAttr(call.step, "delta", 1), false);
}

/// (1 - target) x - log(sigmoid(x)), with log(sigmoid(x)) = min(x, 0) - log1p(exp(-|x|)).
int LowerBceWithLogits(Lowering& low, const OpCall& call) {
  NeedOperands(call, 2, 2);
  Composite op(low, call, CommonType(low, call, {0, 1}));
  const int x = call.args[0], target = call.args[1];
  const int rest = op.Stored(NodeKind::kSub, {op.Number(1), target}, "rest");
  const int linear = op.Stored(NodeKind::kMul, {rest, x}, "linear");
  const int least =
      low.Inner(low.Elementwise(NodeKind::kSmaller, {x, op.Number(0)}, op.inner()), op.Part("min"));
  const int away = op.Step(NodeKind::kNeg, {op.Step(NodeKind::kAbs, {x}, "abs")}, "minus");
  const int log = op.Stored(NodeKind::kLog1p, {op.Stored(NodeKind::kExp, {away}, "exp")}, "log1p");
  const int sigmoid = op.Stored(NodeKind::kSub, {least, log}, "log_sigmoid");
  op.Slack(sigmoid, {least, log}, 8);
  const int each = op.Stored(NodeKind::kSub, {linear, sigmoid}, "each");
  op.Slack(each, {linear, sigmoid, x}, 8);
  return Reduced(low, call, op, each);
}

/// (target - 1) max(log1p(-p), -100) - target max(log(p), -100).
int LowerBinaryCrossEntropy(Lowering& low, const OpCall& call) {
  NeedOperands(call, 2, 2);
  Composite op(low, call, CommonType(low, call, {0, 1}));
  const int p = call.args[0], target = call.args[1];
  const auto bounded = [&](int log, const char* part) {
    return low.Inner(low.Elementwise(NodeKind::kLarger, {log, op.Number(-100)}, op.inner()), op.Part(part));
  };
  const int rest = op.Stored(NodeKind::kSub, {target, op.Number(1)}, "rest");
  const int no = bounded(op.Stored(NodeKind::kLog1p, {op.Step(NodeKind::kNeg, {p}, "minus")}, "log1p"), "no");
  const int yes = bounded(op.Stored(NodeKind::kLog, {p}, "log"), "yes");
  const int against = op.Stored(NodeKind::kMul, {rest, no}, "against");
  const int towards = op.Stored(NodeKind::kMul, {target, yes}, "towards");
  const int each = op.Stored(NodeKind::kSub, {against, towards}, "each");
  op.Slack(each, {against, towards}, 8);
  return Reduced(low, call, op, each);
}

/// target log(target) - target x; nothing where the target is zero.
int LowerKlDiv(Lowering& low, const OpCall& call) {
  NeedOperands(call, 2, 2);
  Composite op(low, call, CommonType(low, call, {0, 1}));
  const int x = call.args[0], target = call.args[1];
  const int log = op.Stored(NodeKind::kLog, {target}, "log");
  const int own = op.Stored(NodeKind::kMul, {target, log}, "own");
  const int none = low.Elementwise(NodeKind::kEqual, {target, op.Number(0)}, DType::kBool);
  const int entropy = op.Choose(none, op.Number(0), own);
  const int cross = op.Stored(NodeKind::kMul, {target, x}, "cross");
  const int each = op.Stored(NodeKind::kSub, {entropy, cross}, "each");
  op.Slack(each, {entropy, cross}, 8);
  return Reduced(low, call, op, each);
}

/// max(0, margin - target (a - b)).
int LowerMarginRankingLoss(Lowering& low, const OpCall& call) {
  NeedOperands(call, 3, 3);
  Composite op(low, call, CommonType(low, call, {0, 1, 2}));
  const int difference = op.Stored(NodeKind::kSub, {call.args[0], call.args[1]}, "difference");
  const int away = op.Step(NodeKind::kNeg, {call.args[2]}, "minus");
  const int product = op.Stored(NodeKind::kMul, {away, difference}, "product");
  const int margin = op.Scalar(NumberAttr(call.step, "margin", 0), call.step.op);
  const int sum = op.Slack(op.Stored(NodeKind::kAdd, {product, margin}, "sum"), {product}, 2);
  const int each =
      low.Inner(low.Elementwise(NodeKind::kLarger, {sum, op.Number(0)}, op.inner()), op.Part("each"));
  return Reduced(low, call, op, each);
}

int LowerNllLoss(Lowering& low, const OpCall& call) {
  NeedOperands(call, 2, 2);
  Composite op(low, call);
  return AtTargets(low, call, op, call.args[0]);
}

/// nll_loss of log_softmax, whose result PyTorch stores.
int LowerCrossEntropy(Lowering& low, const OpCall& call) {
  NeedOperands(call, 2, 2);
  Composite op(low, call);
  Step step;
  step.op = "log_softmax";
  step.as = call.step.as;
  step.attrs["dim"] = Attr{.value = static_cast<int64_t>(low.at(call.args[0]).shape.size() == 1 ? 0 : 1)};
  const int logs = LowerLogSoftmax(low, {.step = step, .args = {call.args[0]}, .is_scalar = {false}});
  low.Materialised(logs, op.Part("log_softmax"));
  low.at(logs).dtype = op.inner();
  return AtTargets(low, call, op, logs);
}

}  // namespace ulpscope
