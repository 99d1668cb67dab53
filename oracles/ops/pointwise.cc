// Pointwise ops that are few steps: powers, bounds, whole parts, comparisons, choices and the activations made of them.
//
// An op that frameworks compute in one kernel, but that some materialise (jax op by op), has steps of its
// own. The slack of a step bounds the other algebraic forms, in units of the format that they compute in.
#include <cmath>

#include "oracles/ops/composite.h"

namespace ulpscope {

void NeedOperands(const OpCall& call, size_t least, size_t most) {
  if (call.args.size() >= least && call.args.size() <= most) return;
  throw LoweringError{call.step.op + ": needs " + std::to_string(least) +
                      (least == most ? "" : " to " + std::to_string(most)) + " operand(s)"};
}

DType CommonType(const Lowering& low, const OpCall& call, const std::vector<size_t>& places) {
  std::vector<PromotionOperand> operands;
  for (const size_t place : places) {
    const Operand& operand = call.step.of[place];
    if (!operand.scalar) {
      const PlanNode& node = low.at(call.args[place]);
      operands.push_back(
          {.dtype = node.dtype, .rank = node.shape.empty() ? OperandRank::kZeroDim : OperandRank::kTensor});
      continue;
    }
    const auto& value = operand.scalar->value;
    operands.push_back({.dtype = std::holds_alternative<bool>(value)      ? DType::kBool
                                 : std::holds_alternative<int64_t>(value) ? DType::kInt64
                                                                          : DType::kFloat64,
                        .rank = OperandRank::kScalar});
  }
  const auto common = ResultType(operands);
  if (!common) throw LoweringError{call.step.op + ": PyTorch has no common type for these operands"};
  return *common;
}

namespace {

int PointwiseChoice(Lowering& low, const OpCall& call, NodeKind kind) {
  NeedOperands(call, 1, 1);
  const int node = low.Elementwise(kind, {call.args[0]});
  return low.Store(node, low.at(node).dtype);
}

int ChoiceOfTwo(Lowering& low, const OpCall& call, NodeKind kind) {
  NeedOperands(call, 2, 2);
  const DType dtype = CommonType(low, call, {0, 1});
  return low.Store(low.Elementwise(kind, {call.args[0], call.args[1]}, dtype), dtype);
}

int Compared(Lowering& low, const OpCall& call, NodeKind kind, size_t first) {
  NeedOperands(call, 2, 2);
  return low.Elementwise(kind, {call.args[first], call.args[1 - first]}, DType::kBool);
}

/// `x` between the given bounds; a NaN stays one, and if both bounds are broken the upper one wins.
int Bounded(Lowering& low, const OpCall& call, std::optional<double> least, std::optional<double> most) {
  NeedOperands(call, 1, 1);
  const int x = call.args[0];
  const DType dtype = low.at(x).dtype;
  int node = x;
  const auto bound = [&](double value, NodeKind kind, bool below) {
    const int end = low.Scalar(value, dtype);
    const int outside =
        low.Elementwise(kind, below ? std::vector{node, end} : std::vector{end, node}, DType::kBool);
    node = low.Elementwise(NodeKind::kChoose, {end, node, outside}, dtype);
  };
  if (least) bound(*least, NodeKind::kLess, true);
  if (most) bound(*most, NodeKind::kLess, false);
  return low.Store(node, dtype);
}

std::optional<double> MaybeNumber(const Step& step, const std::string& name) {
  if (step.Find(name) == nullptr) return std::nullopt;
  return NumberAttr(step, name, 0);
}

/// log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)), which never overflows; kernels that do not fear it take the plain form.
int LogOfOnePlusExp(Lowering& low, Composite& op, int x) {
  const int most =
      low.Inner(low.Elementwise(NodeKind::kLarger, {x, op.Number(0)}, op.inner()), op.Part("max"));
  const int away = op.Step(NodeKind::kNeg, {op.Step(NodeKind::kAbs, {x}, "abs")}, "minus");
  const int log = op.Stored(NodeKind::kLog1p, {op.Stored(NodeKind::kExp, {away}, "exp")}, "log1p");
  const int sum = op.Stored(NodeKind::kAdd, {most, log}, "sum");
  return op.Slack(sum, {sum, most}, 12);
}

}  // namespace

int LowerSquare(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  return low.Elementwise(NodeKind::kMul, {call.args[0], call.args[0]});
}

int LowerReciprocal(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  const DType dtype = FloatingOf(low.at(call.args[0]).dtype);
  return low.Elementwise(NodeKind::kDiv, {low.Scalar(1, dtype), call.args[0]}, dtype);
}

/// Small exponents are products and roots, as frameworks have them, with the step between two to be named.
int LowerPow(Lowering& low, const OpCall& call) {
  NeedOperands(call, 2, 2);
  const int x = call.args[0];
  Composite op(low, call, CommonType(low, call, {0, 1}));
  const auto plain = [&](NodeKind kind, std::vector<int> args) {
    return low.Elementwise(kind, std::move(args), op.own());
  };
  if (!call.is_scalar[1]) return plain(NodeKind::kPower, {x, call.args[1]});
  const double exponent = low.at(call.args[1]).Get<DoubleNumber>().value;
  if (exponent == 0.5) return plain(NodeKind::kSqrt, {x});
  if (exponent == -0.5) return plain(NodeKind::kRsqrt, {x});
  if (exponent == 2) return plain(NodeKind::kMul, {x, x});
  if (exponent == -1) return plain(NodeKind::kDiv, {op.Number(1), x});
  if (exponent == 1) return low.Store(x, op.own());
  if (exponent == -2 || exponent == 3) {
    const int square = op.Stored(NodeKind::kMul, {x, x}, "square");
    const int result = exponent == 3 ? op.Step(NodeKind::kMul, {square, x}, "result")
                                     : op.Step(NodeKind::kDiv, {op.Number(1), square}, "result");
    return op.Result(op.Slack(result, {result}, 4));  // 1 / x squared
  }
  return plain(NodeKind::kPower, {x, call.args[1]});
}

int LowerMaximum(Lowering& low, const OpCall& call) { return ChoiceOfTwo(low, call, NodeKind::kLarger); }
int LowerMinimum(Lowering& low, const OpCall& call) { return ChoiceOfTwo(low, call, NodeKind::kSmaller); }
int LowerSign(Lowering& low, const OpCall& call) { return PointwiseChoice(low, call, NodeKind::kSign); }
int LowerFloor(Lowering& low, const OpCall& call) { return PointwiseChoice(low, call, NodeKind::kFloor); }
int LowerCeil(Lowering& low, const OpCall& call) { return PointwiseChoice(low, call, NodeKind::kCeil); }
int LowerRound(Lowering& low, const OpCall& call) { return PointwiseChoice(low, call, NodeKind::kRound); }
int LowerTrunc(Lowering& low, const OpCall& call) { return PointwiseChoice(low, call, NodeKind::kTrunc); }

int LowerClamp(Lowering& low, const OpCall& call) {
  const auto least = MaybeNumber(call.step, "min"), most = MaybeNumber(call.step, "max");
  if (!least && !most) throw LoweringError{"clamp needs min or max"};
  return Bounded(low, call, least, most);
}
/// A NaN and the infinities replaced, each by a number that the dtype then rounds.
int LowerNanToNum(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  const int x = call.args[0];
  const DType dtype = low.at(x).dtype;
  if (!IsFloating(dtype)) return low.Store(x, dtype);
  const double most = FormatOf(dtype)->max_finite;
  const int no_number = low.Elementwise(
      NodeKind::kNot, {low.Elementwise(NodeKind::kEqual, {x, x}, DType::kBool)}, DType::kBool);
  const int above = low.Elementwise(NodeKind::kLess, {low.Scalar(most, dtype), x}, DType::kBool);
  const int below = low.Elementwise(NodeKind::kLess, {x, low.Scalar(-most, dtype)}, DType::kBool);
  int node = x;
  const auto choose = [&](const char* name, double otherwise, int where) {
    const int number = low.Scalar(NumberAttr(call.step, name, otherwise), dtype);
    node = low.Elementwise(NodeKind::kChoose, {number, node, where}, dtype);
  };
  choose("nan", 0, no_number);
  choose("posinf", most, above);
  choose("neginf", -most, below);
  return low.Store(node, dtype);
}

int LowerHardtanh(Lowering& low, const OpCall& call) {
  return Bounded(low, call, NumberAttr(call.step, "min_val", -1), NumberAttr(call.step, "max_val", 1));
}
int LowerRelu6(Lowering& low, const OpCall& call) { return Bounded(low, call, 0, 6); }

int LowerEq(Lowering& low, const OpCall& call) { return Compared(low, call, NodeKind::kEqual, 0); }
int LowerNe(Lowering& low, const OpCall& call) {
  return low.Elementwise(NodeKind::kNot, {LowerEq(low, call)}, DType::kBool);
}
int LowerLt(Lowering& low, const OpCall& call) { return Compared(low, call, NodeKind::kLess, 0); }
int LowerLe(Lowering& low, const OpCall& call) { return Compared(low, call, NodeKind::kLessEqual, 0); }
int LowerGt(Lowering& low, const OpCall& call) { return Compared(low, call, NodeKind::kLess, 1); }
int LowerGe(Lowering& low, const OpCall& call) { return Compared(low, call, NodeKind::kLessEqual, 1); }
int LowerLogicalAnd(Lowering& low, const OpCall& call) { return Compared(low, call, NodeKind::kAnd, 0); }
int LowerLogicalOr(Lowering& low, const OpCall& call) { return Compared(low, call, NodeKind::kOr, 0); }
int LowerLogicalNot(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  return low.Elementwise(NodeKind::kNot, {call.args[0]}, DType::kBool);
}

int LowerMaskedFill(Lowering& low, const OpCall& call) {
  NeedOperands(call, 3, 3);
  if (low.at(call.args[1]).dtype != DType::kBool)
    throw LoweringError{"masked_fill: the mask is no bool tensor"};
  const DType dtype = low.at(call.args[0]).dtype;
  return low.Store(low.Elementwise(NodeKind::kChoose, {call.args[2], call.args[0], call.args[1]}, dtype),
                   dtype);
}

int LowerLeakyRelu(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  Composite op(low, call);
  const int x = call.args[0];
  const double slope = NumberAttr(call.step, "negative_slope", 0.01);
  const int scaled = op.Step(NodeKind::kMul, {x, op.Scalar(slope, call.step.op)}, "scaled");
  const int positive = low.Elementwise(NodeKind::kLess, {op.Number(0), x}, DType::kBool);
  return op.Chosen(op.Choose(positive, x, scaled));
}

/// x above zero, else alpha (exp(x) - 1).
int LowerElu(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  Composite op(low, call);
  const int x = call.args[0];
  const double alpha = NumberAttr(call.step, "alpha", 1);
  int tail = op.Stored(NodeKind::kExpm1, {x}, "expm1");
  if (alpha != 1) tail = op.Step(NodeKind::kMul, {tail, op.Scalar(alpha, call.step.op)}, "scaled");
  const int positive = low.Elementwise(NodeKind::kLess, {op.Number(0), x}, DType::kBool);
  return op.Chosen(op.Choose(positive, x, tail));
}

/// log(1 + exp(beta x)) / beta, and x itself beyond the threshold.
int LowerSoftplus(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  Composite op(low, call);
  const int x = call.args[0];
  const double beta = NumberAttr(call.step, "beta", 1), threshold = NumberAttr(call.step, "threshold", 20);
  const auto factor = [&] { return op.Scalar(beta, call.step.op); };
  const int scaled = beta == 1 ? x : op.Step(NodeKind::kMul, {x, factor()}, "scaled");
  int log = LogOfOnePlusExp(low, op, scaled);
  if (beta != 1) log = op.Step(NodeKind::kDiv, {log, factor()}, "quotient");
  const int linear = low.Elementwise(NodeKind::kLess, {op.Number(threshold), scaled}, DType::kBool);
  return op.Chosen(op.Choose(linear, x, log));
}

/// x tanh(log(1 + exp(x))).
int LowerMish(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  Composite op(low, call);
  const int x = call.args[0];
  const int tanh = op.Stored(NodeKind::kTanh, {LogOfOnePlusExp(low, op, x)}, "tanh");
  const int result = op.Step(NodeKind::kMul, {x, tanh}, "result");
  return op.Result(op.Slack(result, {result}, 16));
}

/// start + weight (end - start); frameworks take end - (end - start) (1 - weight) for weights from a half on.
int LowerLerp(Lowering& low, const OpCall& call) {
  NeedOperands(call, 3, 3);
  Composite op(low, call, CommonType(low, call, {0, 1}));
  const int start = call.args[0], end = call.args[1];
  const int difference = op.Stored(NodeKind::kSub, {end, start}, "difference");
  const int product = op.Stored(NodeKind::kMul, {difference, call.args[2]}, "product");
  const int result = op.Step(NodeKind::kAdd, {start, product}, "result");
  const int rest = low.Elementwise(NodeKind::kSub, {difference, product}, op.inner());
  return op.Result(op.Slack(result, {start, end, product, rest, difference}, 4));
}

/// x + value a b. Frameworks scale either factor first.
int LowerAddcmul(Lowering& low, const OpCall& call) {
  NeedOperands(call, 3, 3);
  Composite op(low, call, CommonType(low, call, {0, 1, 2}));
  const double value = NumberAttr(call.step, "value", 1);
  int product = op.Stored(NodeKind::kMul, {call.args[1], call.args[2]}, "product");
  if (value != 1) product = op.Stored(NodeKind::kMul, {product, op.Scalar(value, call.step.op)}, "scaled");
  const int result = op.Step(NodeKind::kAdd, {call.args[0], product}, "result");
  return op.Result(op.Slack(result, {product}, 4));
}

/// x + value a / b.
int LowerAddcdiv(Lowering& low, const OpCall& call) {
  NeedOperands(call, 3, 3);
  Composite op(low, call, FloatingOf(CommonType(low, call, {0, 1, 2})));
  const double value = NumberAttr(call.step, "value", 1);
  int ratio = op.Stored(NodeKind::kDiv, {call.args[1], call.args[2]}, "ratio");
  if (value != 1) ratio = op.Stored(NodeKind::kMul, {ratio, op.Scalar(value, call.step.op)}, "scaled");
  const int result = op.Step(NodeKind::kAdd, {call.args[0], ratio}, "result");
  return op.Result(op.Slack(result, {ratio}, 4));
}

/// sqrt(a^2 + b^2).
int LowerHypot(Lowering& low, const OpCall& call) {
  NeedOperands(call, 2, 2);
  Composite op(low, call, CommonType(low, call, {0, 1}));
  const int a = op.Stored(NodeKind::kMul, {call.args[0], call.args[0]}, "first");
  const int b = op.Stored(NodeKind::kMul, {call.args[1], call.args[1]}, "second");
  const int sum = op.Stored(NodeKind::kAdd, {a, b}, "sum");
  const int result = op.Step(NodeKind::kSqrt, {sum}, "result");
  return op.Result(op.Slack(result, {result}, 8));
}

int LowerFmod(Lowering& low, const OpCall& call) {
  NeedOperands(call, 2, 2);
  const DType dtype = CommonType(low, call, {0, 1});
  return low.Store(low.Elementwise(NodeKind::kFmod, {call.args[0], call.args[1]}, dtype), dtype);
}

namespace {

/// Remainder of a by b, and whether its sign differs from b's, in which case the quotient rounded down is one
/// less.
struct Division {
  int left, below;
};

Division Divided(Lowering& low, const OpCall& call, DType dtype) {
  NeedOperands(call, 2, 2);
  const auto less = [&](int a, int b) { return low.Elementwise(NodeKind::kLess, {a, b}, DType::kBool); };
  const auto both = [&](int a, int b) { return low.Elementwise(NodeKind::kAnd, {a, b}, DType::kBool); };
  const int zero = low.Scalar(0, dtype), b = call.args[1];
  const int left = low.Elementwise(NodeKind::kFmod, {call.args[0], b}, dtype);
  return {.left = left,
          .below = low.Elementwise(
              NodeKind::kOr, {both(less(left, zero), less(zero, b)), both(less(zero, left), less(b, zero))},
              DType::kBool)};
}

}  // namespace

/// With the sign of the divisor, as in Python: fmod, and the divisor added if the signs differ.
int LowerRemainder(Lowering& low, const OpCall& call) {
  const DType dtype = CommonType(low, call, {0, 1});
  const Division found = Divided(low, call, dtype);
  if (!IsFloating(dtype)) {
    const int raised = low.Elementwise(NodeKind::kAdd, {found.left, call.args[1]}, dtype);
    return low.Elementwise(NodeKind::kChoose, {raised, found.left, found.below}, dtype);
  }
  Composite op(low, call, dtype);
  const int raised = op.Stored(NodeKind::kAdd, {found.left, call.args[1]}, "raised");
  return op.Chosen(op.Choose(found.below, raised, found.left));
}

/// (a - fmod(a, b)) / b is whole but for its roundings.
int LowerFloorDivide(Lowering& low, const OpCall& call) {
  const DType dtype = CommonType(low, call, {0, 1});
  const Division found = Divided(low, call, dtype);
  Composite op(low, call, dtype);
  const auto step = [&](NodeKind kind, std::vector<int> args, const char* part) {
    return IsFloating(dtype) ? op.Stored(kind, std::move(args), part)
                             : low.Elementwise(kind, std::move(args), dtype);
  };
  const int multiple = step(NodeKind::kSub, {call.args[0], found.left}, "multiple");
  const int quotient = step(NodeKind::kDiv, {multiple, call.args[1]}, "quotient");
  const int less = step(NodeKind::kSub, {quotient, low.Scalar(1, dtype)}, "less");
  const int whole = low.Elementwise(
      NodeKind::kRound, {low.Elementwise(NodeKind::kChoose, {less, quotient, found.below}, op.inner())},
      op.inner());
  return IsFloating(dtype) ? op.Chosen(whole) : low.Store(whole, dtype);
}

int LowerAtan2(Lowering& low, const OpCall& call) {
  NeedOperands(call, 2, 2);
  return low.Elementwise(NodeKind::kAtan2, {call.args[0], call.args[1]},
                         FloatingOf(CommonType(low, call, {0, 1})));
}

int LowerDropout(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  if (BoolAttr(call.step, "train", false) && NumberAttr(call.step, "p", 0.5) != 0)
    throw LoweringError{"dropout: random numbers have no reference; train: false, or p: 0"};
  return low.Store(call.args[0], low.at(call.args[0]).dtype);
}

}  // namespace ulpscope
