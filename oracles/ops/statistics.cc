// Variances, lengths, products and running sums along dimensions; batch_norm and group_norm.
#include <cmath>
#include <utility>

#include "harness/words/ops.h"
#include "oracles/ops/composite.h"

namespace ulpscope {
namespace {

/// The mean of the squared distances from the mean, with `correction` subtracted from the count. Frameworks take two
/// passes, Welford's or the mean of the squares less the squared mean; the slack bounds them all, as in layer_norm.
int Variance(Lowering& low, Composite& op, int x, const std::vector<int64_t>& axes, bool keepdim,
             double correction) {
  // The distances from the mean add up to nothing, and so does the gradient through it: frameworks leave that out.
  // Kept, it would be noise, which a rounding to a small range would explain better than the true model.
  const bool with_gradient = std::exchange(low.grad_enabled, false);
  const int sum = low.Inner(low.Sum(x, axes, true, op.inner()), op.Part("sum"));
  const int64_t count = low.at(low.plan.Root(sum)).terms();
  const int length = low.Constant(count, 1, op.inner());
  const int mean = op.Stored(NodeKind::kDiv, {sum, length}, "mean");
  low.grad_enabled = with_gradient;
  const int centred = op.Step(NodeKind::kSub, {x, mean}, "centered");
  const int square = op.Step(NodeKind::kMul, {centred, centred}, "square");
  const int total = low.Inner(low.Sum(square, axes, keepdim, op.inner()), op.Part("square_sum"));
  const int raw = low.Sum(low.Elementwise(NodeKind::kMul, {x, x}, op.inner()), axes, keepdim, op.inner());
  const double counted = std::max(0.0, static_cast<double>(count) - correction);
  const int divisor = low.Scalar(counted, op.inner());
  const int variance = op.Step(NodeKind::kDiv, {total, divisor}, "var");
  const int most = low.Elementwise(NodeKind::kDiv, {raw, divisor}, op.inner());
  return op.Slack(variance, {most}, static_cast<double>(count) + 8);
}

int Spread(Lowering& low, const OpCall& call, bool root) {
  NeedOperands(call, 1, 1);
  Composite op(low, call);
  int result = Variance(low, op, call.args[0], IntsAttr(call.step, "dim"),
                        BoolAttr(call.step, "keepdim", false), NumberAttr(call.step, "correction", 1));
  if (root) {
    low.Materialised(result, op.Part("var"));
    result = op.Step(NodeKind::kSqrt, {result}, "result");
    op.Slack(result, {result}, 4);
  }
  return op.Result(result);
}

/// Per channel: the elements of a vector along dimension 1 of a shape.
int AlongChannels(Lowering& low, int vector, const Shape& shape) {
  Shape like(shape.size(), 1);
  like.at(1) = low.plan.size(vector);
  return low.Reshape(vector, like);
}

}  // namespace

int LowerVar(Lowering& low, const OpCall& call) { return Spread(low, call, false); }
int LowerStd(Lowering& low, const OpCall& call) { return Spread(low, call, true); }

int LowerAmin(Lowering& low, const OpCall& call) {
  return low.Minimum(call.args.at(0), IntsAttr(call.step, "dim"), BoolAttr(call.step, "keepdim", false));
}

/// The product, rounded at every factor. The number of factors bounds every order.
int LowerProd(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  Composite op(low, call);
  const int result = low.Along(NodeKind::kProduct, call.args[0], IntsAttr(call.step, "dim"),
                               BoolAttr(call.step, "keepdim", false), op.own());
  const int root = low.plan.Root(result);
  low.at(root).inner = true;
  low.Slack(root, {root}, static_cast<double>(low.at(root).terms()) + 1);
  return result;
}

int LowerCumsum(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  const auto dim = IntAttr(call.step, "dim");
  if (!dim) throw LoweringError{"cumsum needs dim"};
  return low.Scan(call.args[0], *dim, SummedIn(low, call));
}

namespace {

/// For each place along a dimension every element up to it, along one more dimension behind that.
struct UpToHere {
  int elements;  ///< all of them
  Shape apart, all;
  int kept;       ///< which of them are no further than the place
  int from_here;  ///< which of them are no nearer
  int64_t axis;   ///< of the elements
};

UpToHere ElementsUpToHere(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  constexpr int64_t kMost = 512;  // the work grows with the square
  const int x = call.args[0];
  const Shape shape = low.at(x).shape;
  const auto dim = IntAttr(call.step, "dim");
  const auto rank = static_cast<int64_t>(shape.size());
  if (!dim || rank == 0 || *dim < -rank || *dim >= rank) throw LoweringError{call.step.op + " needs dim"};
  const auto place = static_cast<size_t>(*dim < 0 ? *dim + rank : *dim);
  const int64_t extent = shape[place];
  if (extent > kMost)
    throw LoweringError{call.step.op + ": the oracle has no more than " + std::to_string(kMost) +
                        " elements"};
  const auto at = static_cast<std::ptrdiff_t>(place);
  Shape apart = shape, all = shape;
  apart.insert(apart.begin() + at, 1);
  all.insert(all.begin() + at, extent);
  Shape line(shape.size() - place, 1);
  line[0] = extent;
  Shape column = line;
  column.insert(column.begin() + 1, 1);
  const int from = low.Reshape(low.Count(0, 1, extent, DType::kInt64), line),
            to = low.Reshape(low.Count(0, 1, extent, DType::kInt64), column);
  return {.elements = low.Expand(low.Reshape(x, apart), all),
          .apart = apart,
          .all = all,
          .kept = low.Elementwise(NodeKind::kLessEqual, {from, to}, DType::kBool),
          .from_here = low.Elementwise(NodeKind::kLessEqual, {to, from}, DType::kBool),
          .axis = static_cast<int64_t>(place) + 1};
}

}  // namespace

int LowerCumprod(Lowering& low, const OpCall& call) {
  const UpToHere up = ElementsUpToHere(low, call);
  const DType own = low.at(call.args[0]).dtype;
  if (!IsFloating(own)) throw LoweringError{"cumprod: the oracle has floating-point numbers"};
  const int factors = low.Elementwise(NodeKind::kChoose, {up.elements, low.Scalar(1, own), up.kept}, own);
  const int result = low.Along(NodeKind::kProduct, factors, {up.axis}, false, own);
  const int root = low.plan.Root(result);
  low.at(root).inner = true;
  low.Slack(root, {root}, static_cast<double>(low.at(root).terms()) + 1);
  // The gradient of an element is its share of every product from its place on.
  low.own_gradients[result] = {
      call.args[0], [x = call.args[0], result, up](Lowering& to, int grad) {
        const DType dtype = to.at(x).dtype;
        const int weighted = to.Elementwise(NodeKind::kMul, {grad, result}, dtype);
        const int behind = to.Elementwise(
            NodeKind::kChoose,
            {to.Expand(to.Reshape(weighted, up.apart), up.all), to.Scalar(0, dtype), up.from_here}, dtype);
        const int sum = to.Sum(behind, {up.axis}, false, dtype);
        return to.Elementwise(NodeKind::kDiv, {sum, x}, dtype);
      }};
  return result;
}

/// m + log of the sum of exp(x - m), with m the largest so far. Kernels add one element after the other to the logarithm.
int LowerLogcumsumexp(Lowering& low, const OpCall& call) {
  const UpToHere up = ElementsUpToHere(low, call);
  Composite op(low, call);
  const int x = call.args[0];
  Shape apart = low.at(x).shape;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(up.axis), 1);
  const int own_place = low.Reshape(x, apart);
  const DType inner = op.inner();
  const int so_far = low.Elementwise(NodeKind::kChoose, {up.elements, own_place, up.kept}, inner);
  // Gradients through the largest add up to zero.
  const bool with_gradient = std::exchange(low.grad_enabled, false);
  const int top = low.Maximum(so_far, {up.axis}, true);
  low.grad_enabled = with_gradient;
  const int shifted = op.Step(NodeKind::kSub, {so_far, top}, "shifted");
  const int exp = op.Step(NodeKind::kExp, {shifted}, "exp");
  const int counted = low.Elementwise(NodeKind::kChoose, {exp, low.Scalar(0, inner), up.kept}, inner);
  const int total = low.Inner(low.Sum(counted, {up.axis}, true, inner), op.Part("total"));
  const auto terms = static_cast<double>(low.at(low.plan.Root(total)).terms());
  const int log = op.Step(NodeKind::kLog, {total}, "log_total");
  const int result = op.Step(NodeKind::kAdd, {top, log}, "result");
  return low.Reshape(op.Result(op.Slack(result, {top, log, low.Scalar(1, inner)}, 2 * terms + 8)),
                     low.at(x).shape);
}

/// sqrt(sum x^2), sum |x| or max |x|.
int LowerNorm(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  Composite op(low, call);
  const double p = NumberAttr(call.step, "p", 2);
  const auto axes = IntsAttr(call.step, "dim");
  const bool keepdim = BoolAttr(call.step, "keepdim", false);
  const int x = call.args[0];
  if (p == 2) {
    const int square = op.Step(NodeKind::kMul, {x, x}, "square");
    const int total = low.Materialised(low.Sum(square, axes, keepdim, op.inner()), op.Part("square_sum"));
    const int result = op.Step(NodeKind::kSqrt, {total}, "result");
    return op.Result(op.Slack(result, {result}, 4));
  }
  const int size = op.Step(NodeKind::kAbs, {x}, "size");
  if (p == 1) {
    const int result = low.Sum(size, axes, keepdim, op.inner());
    low.at(low.plan.Root(result)).inner = true;
    low.at(low.plan.Root(result)).dtype = op.own();
    low.at(result).dtype = op.own();
    return result;
  }
  if (std::isinf(p) && p > 0) {
    const int result = low.Maximum(size, axes, keepdim);
    return low.Store(result, op.own());
  }
  throw LoweringError{"norm: the oracle has p 1, 2 and inf"};
}

/// (x - mean) / sqrt(var + eps) * weight + bias with the statistics that were kept: eval mode.
int LowerBatchNorm(Lowering& low, const OpCall& call) {
  NeedOperands(call, 3, 5);
  Composite op(low, call);
  const int x = call.args[0];
  const Shape shape = low.at(x).shape;
  if (shape.size() < 2) throw LoweringError{"batch_norm: needs a dimension of channels"};
  const auto channels = [&](size_t i) { return AlongChannels(low, call.args[i], shape); };
  const int eps = op.Number(NumberAttr(call.step, "eps", kNormEps));
  const int shifted = op.Step(NodeKind::kAdd, {channels(2), eps}, "var_eps");
  const int rstd = op.Stored(NodeKind::kRsqrt, {shifted}, "rstd");
  op.Slack(rstd, {rstd}, 4);
  const int centred = op.Stored(NodeKind::kSub, {x, channels(1)}, "centered");
  int result = op.Stored(NodeKind::kMul, {centred, rstd}, "normalized");
  // Kernels fold the four vectors into a factor and an addend.
  std::vector<int> forms{low.Elementwise(NodeKind::kMul, {x, rstd}, op.inner()),
                         low.Elementwise(NodeKind::kMul, {channels(1), rstd}, op.inner())};
  if (call.args.size() > 3) {
    result = op.Stored(NodeKind::kMul, {result, channels(3)}, "scaled");
    for (int& form : forms) form = low.Elementwise(NodeKind::kMul, {form, channels(3)}, op.inner());
  }
  if (call.args.size() > 4) {
    result = op.Step(NodeKind::kAdd, {result, channels(4)}, "result");
    forms.push_back(channels(4));
  }
  return op.Result(op.Slack(result, forms, 10));
}

namespace {

/// layer_norm over groups of channels, with an affine part by channel.
int InGroups(Lowering& low, const OpCall& call, int64_t groups) {
  NeedOperands(call, 1, 3);
  Composite op(low, call);
  const int x = call.args[0];
  const Shape shape = low.at(x).shape;
  if (groups < 1 || shape.size() < 2 || shape[1] % groups != 0)
    throw LoweringError{call.step.op + ": the groups do not divide the channels"};
  const int rows = low.Reshape(x, {shape[0], groups, -1});
  const int64_t count = low.at(rows).shape[2];
  const int length = low.Constant(count, 1, op.inner());
  const int mean = op.Stored(
      NodeKind::kDiv, {low.Inner(low.Sum(rows, {2}, true, op.inner()), op.Part("sum")), length}, "mean");
  const int centred = op.Step(NodeKind::kSub, {rows, mean}, "centered");
  const int square = op.Step(NodeKind::kMul, {centred, centred}, "square");
  const int total = low.Inner(low.Sum(square, {2}, true, op.inner()), op.Part("square_sum"));
  const int variance = op.Step(NodeKind::kDiv, {total, length}, "var");
  const int raw = low.Sum(low.Elementwise(NodeKind::kMul, {rows, rows}, op.inner()), {2}, true, op.inner());
  op.Slack(variance, {low.Elementwise(NodeKind::kDiv, {raw, length}, op.inner())},
           static_cast<double>(count) + 8);
  const int eps = op.Number(NumberAttr(call.step, "eps", kNormEps));
  const int shifted = op.Step(NodeKind::kAdd, {variance, eps}, "var_eps");
  const int rstd = op.Stored(NodeKind::kRsqrt, {shifted}, "rstd");
  op.Slack(rstd, {rstd}, 4);
  const auto whole = [&](int node) { return low.Reshape(node, shape); };
  std::vector<int> forms{
      low.Elementwise(NodeKind::kMul, {rows, rstd}, op.inner()),
      low.Expand(low.Elementwise(NodeKind::kMul, {mean, rstd}, op.inner()), low.at(rows).shape)};
  for (int& form : forms) form = whole(form);
  const int normalized = op.Step(NodeKind::kMul, {centred, rstd}, "normalized");
  if (call.args.size() == 1) {
    op.Slack(normalized,
             {low.Elementwise(NodeKind::kMul, {rows, rstd}, op.inner()),
              low.Elementwise(NodeKind::kMul, {mean, rstd}, op.inner())},
             8);
    low.at(normalized).name.clear();
    low.at(normalized).dtype = op.own();
    return whole(normalized);
  }
  low.Materialised(normalized, op.Part("normalized"));
  int result = whole(normalized);
  for (size_t i = 1; i < call.args.size(); ++i) {
    const int channels = AlongChannels(low, call.args[i], shape);
    result = i == 1 ? op.Stored(NodeKind::kMul, {result, channels}, "scaled")
                    : op.Step(NodeKind::kAdd, {result, channels}, "result");
    if (i == 1) {
      for (int& form : forms) form = low.Elementwise(NodeKind::kMul, {form, channels}, op.inner());
    } else {
      forms.push_back(channels);
    }
  }
  return op.Result(op.Slack(result, forms, 10));
}

}  // namespace

int LowerGroupNorm(Lowering& low, const OpCall& call) {
  return InGroups(low, call, IntAttr(call.step, "num_groups").value_or(0));
}

/// Every channel is a group.
int LowerInstanceNorm(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 3);
  const Shape& shape = low.at(call.args[0]).shape;
  return InGroups(low, call, shape.size() < 3 ? 0 : shape[1]);
}

}  // namespace ulpscope
