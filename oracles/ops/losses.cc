// Losses: the loss of each element, then their sum or mean, which PyTorch computes in kernels of their own.
#include <algorithm>

#include "oracles/ops/composite.h"

namespace ulpscope {
namespace {

enum class Over { kNone, kSum, kMean };

Over OverOf(const Step& step) {
  const std::string word = TextAttr(step, "reduction", "mean");
  return word == "none" ? Over::kNone : word == "sum" ? Over::kSum : Over::kMean;
}

/// The loss over all elements from that of each; `weight` is the divisor of a mean, -1 for their number.
int OverAll(Lowering& low, const OpCall& call, Composite& op, int each, int weight, const char* total_name,
            const char* mean_name) {
  const Over over = OverOf(call.step);
  if (over == Over::kNone) return each;
  const int64_t count = low.plan.size(each);
  const int total = low.Inner(low.Sum(each, {}, false, op.inner()), op.Part(total_name));
  if (over == Over::kSum) return total;
  if (weight < 0) weight = low.Constant(count, 1, op.inner());
  return op.Step(NodeKind::kDiv, {total, weight}, mean_name);
}

/// The result from the loss of each element, which is the last step named so far.
int Reduced(Lowering& low, const OpCall& call, Composite& op, int each, int weight = -1) {
  if (OverOf(call.step) == Over::kNone) {
    const int root = low.plan.Root(each);
    return RoundsNothing(low.at(root).kind) ? op.Chosen(each) : op.Result(each);
  }
  return op.Result(OverAll(low, call, op, each, weight, "total", "mean"));
}

int Difference(Lowering& low, const OpCall& call, Composite& op) {
  NeedOperands(call, 2, 2);
  if (low.at(call.args[0]).shape != low.at(call.args[1]).shape)
    throw LoweringError{call.step.op + ": input and target differ in shape"};
  return op.Stored(NodeKind::kSub, {call.args[0], call.args[1]}, "difference");
}

/// A parabola within `edge`, a straight line with slope `slope` beyond: both losses are this one with other parameters.
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

/// The classes lie along dimension 1, or 0 of a vector.
int64_t ClassDim(const Shape& shape) { return shape.size() == 1 ? 0 : 1; }

/// Targets that are whole numbers: which of them count, the replacement of the others, and the weight of each.
struct Targets {
  int ignored = -1;  ///< a condition, or -1
  int place = -1;
  int weight = -1;  ///< of each target; -1 without weights
  int total = -1;   ///< divisor of a mean; -1 for the number of targets
};

Targets TargetsOf(Lowering& low, const OpCall& call, Composite& op) {
  Targets targets{.place = call.args[1]};
  const DType whole = low.at(targets.place).dtype;
  if (const auto number = IntAttr(call.step, "ignore_index")) {
    targets.ignored = low.Elementwise(
        NodeKind::kEqual, {targets.place, low.Scalar(static_cast<double>(*number), whole)}, DType::kBool);
    targets.place =
        low.Elementwise(NodeKind::kChoose, {low.Scalar(0, whole), targets.place, targets.ignored}, whole);
  }
  if (call.args.size() > 2) targets.weight = low.Pick(call.args[2], 0, targets.place);
  if (targets.ignored < 0 && targets.weight < 0) return targets;
  int counted = targets.weight;
  if (counted < 0) counted = low.Expand(op.Number(1), low.at(targets.place).shape);
  if (targets.ignored >= 0) counted = op.Choose(targets.ignored, op.Number(0), counted);
  if (OverOf(call.step) == Over::kMean)
    targets.total = low.Materialised(low.Sum(counted, {}, false, op.inner()), op.Part("weight"));
  return targets;
}

int Counted(Composite& op, const Targets& targets, int each) {
  return targets.ignored < 0 ? each : op.Choose(targets.ignored, op.Number(0), each);
}

/// -log_probabilities at the targets.
int AtTargets(Lowering& low, Composite& op, const Targets& targets, int logs) {
  const Shape shape = low.at(logs).shape;
  const int64_t dim = ClassDim(shape);
  Shape one = shape;
  one[static_cast<size_t>(dim)] = 1;
  const Shape of = low.at(targets.place).shape;
  const int taken = low.Gather(logs, dim, low.Reshape(targets.place, one));
  int each = op.Step(NodeKind::kNeg, {low.Reshape(taken, of)}, "each");
  if (targets.weight >= 0) each = op.Step(NodeKind::kMul, {each, targets.weight}, "weighted");
  return Counted(op, targets, each);
}

/// The weights of classes, broadcast to the log-probabilities.
int BesideClasses(Lowering& low, const OpCall& call, const Shape& shape) {
  Shape row(shape.size(), 1);
  row[static_cast<size_t>(ClassDim(shape))] = -1;
  return low.Reshape(call.args[2], row);
}

/// (1 - smoothing) of the loss at the targets, and of the sum over all classes as much as each class then has.
int Smoothed(Lowering& low, const OpCall& call, Composite& op, const Targets& targets, int logs,
             double smoothing) {
  const Shape shape = low.at(logs).shape;
  const int64_t dim = ClassDim(shape);
  const auto classes = static_cast<double>(shape[static_cast<size_t>(dim)]);
  const int at_targets =
      OverAll(low, call, op, AtTargets(low, op, targets, logs), targets.total, "target_total", "target_mean");
  if (!RoundsNothing(low.at(low.plan.Root(at_targets)).kind)) low.at(at_targets).materialised = true;
  const int given = call.args.size() < 3 ? logs
                                         : op.Stored(NodeKind::kMul, {logs, BesideClasses(low, call, shape)},
                                                     "class_weighted");
  const int sums = low.Materialised(low.Sum(given, {dim}, false, op.inner()), op.Part("class_sum"));
  const int all = Counted(op, targets, op.Step(NodeKind::kNeg, {sums}, "classes"));
  const int smooth = OverAll(low, call, op, all, targets.total, "smooth_total", "smooth_mean");
  if (!RoundsNothing(low.at(low.plan.Root(smooth)).kind)) low.at(smooth).materialised = true;
  const int kept = op.Stored(NodeKind::kMul, {at_targets, op.Scalar(1 - smoothing, call.step.op)}, "kept");
  const int spread =
      op.Stored(NodeKind::kMul, {smooth, op.Scalar(smoothing / classes, call.step.op)}, "spread");
  const int result = op.Step(NodeKind::kAdd, {kept, spread}, "result");
  return op.Result(op.Slack(result, {kept, spread}, 8));
}

/// -sum of log-probabilities by the probabilities that the target gives.
int ByProbabilities(Lowering& low, const OpCall& call, Composite& op, int logs, double smoothing) {
  const Shape shape = low.at(logs).shape;
  if (low.at(call.args[1]).shape != shape || call.step.Find("ignore_index") != nullptr)
    throw LoweringError{call.step.op + ": probabilities have the input's shape, and none of them is ignored"};
  const int64_t dim = ClassDim(shape), classes = shape[static_cast<size_t>(dim)];
  int target = call.args[1];
  if (smoothing > 0) {
    const int scaled =
        op.Stored(NodeKind::kMul, {target, op.Scalar(1 - smoothing, call.step.op)}, "target_kept");
    const int share = op.Scalar(smoothing / static_cast<double>(classes), call.step.op);
    target = op.Stored(NodeKind::kAdd, {scaled, share}, "target");
  }
  int each = op.Stored(NodeKind::kMul, {logs, target}, "product");
  if (call.args.size() > 2)
    each = op.Stored(NodeKind::kMul, {each, BesideClasses(low, call, shape)}, "weighted");
  const bool apart = OverOf(call.step) == Over::kNone;
  const int total = low.Materialised(
      low.Sum(each, apart ? std::vector<int64_t>{dim} : std::vector<int64_t>{}, false, op.inner()),
      op.Part("total"));
  const int loss = op.Step(NodeKind::kNeg, {total}, "loss");
  if (OverOf(call.step) != Over::kMean) return op.Result(loss);
  const int64_t lines = low.plan.size(logs) / std::max<int64_t>(1, classes);
  return op.Result(op.Step(NodeKind::kDiv, {loss, low.Constant(lines, 1, op.inner())}, "mean"));
}

void NeedClasses(Lowering& low, const OpCall& call) {
  NeedOperands(call, 2, 3);
  if (low.at(call.args[0]).shape.empty()) throw LoweringError{call.step.op + ": needs classes"};
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

/// target log(target) - target x; nothing if the target is zero.
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
  NeedClasses(low, call);
  if (IsFloating(low.at(call.args[1]).dtype)) throw LoweringError{"nll_loss: targets are whole numbers"};
  Composite op(low, call);
  const Targets targets = TargetsOf(low, call, op);
  return Reduced(low, call, op, AtTargets(low, op, targets, call.args[0]), targets.total);
}

/// nll_loss of log_softmax, whose result PyTorch stores.
int LowerCrossEntropy(Lowering& low, const OpCall& call) {
  NeedClasses(low, call);
  Composite op(low, call);
  Step step;
  step.op = "log_softmax";
  step.as = call.step.as;
  step.attrs["dim"] = Attr{.value = ClassDim(low.at(call.args[0]).shape)};
  const int logs = LowerLogSoftmax(low, {.step = step, .args = {call.args[0]}, .is_scalar = {false}});
  low.Materialised(logs, op.Part("log_softmax"));
  low.at(logs).dtype = op.inner();
  const double smoothing = NumberAttr(call.step, "label_smoothing", 0);
  if (IsFloating(low.at(call.args[1]).dtype)) return ByProbabilities(low, call, op, logs, smoothing);
  const Targets targets = TargetsOf(low, call, op);
  if (smoothing != 0) return Smoothed(low, call, op, targets, logs, smoothing);
  return Reduced(low, call, op, AtTargets(low, op, targets, logs), targets.total);
}

}  // namespace ulpscope
