// Sums, means and layer_norm.
#include "oracles/ops/composite.h"
#include "oracles/ops/table.h"

namespace ulpscope {

std::optional<DType> SummedIn(const Lowering& low, const OpCall& call) {
  const auto asked = DTypeAttr(call.step, "dtype");
  return asked || IsFloating(low.at(call.args[0]).dtype) ? asked : DType::kInt64;
}

int LowerSum(Lowering& low, const OpCall& call) {
  if (call.args.size() != 1) throw LoweringError{"sum: needs 1 operand"};
  return low.Sum(call.args[0], IntsAttr(call.step, "dim"), BoolAttr(call.step, "keepdim", false),
                 SummedIn(low, call));
}

int LowerMean(Lowering& low, const OpCall& call) {
  const int sum = LowerSum(low, call);
  const int root = low.plan.Root(sum);
  low.at(root).inner = true;
  const int64_t count = low.at(root).terms();
  const DType dtype = low.at(sum).dtype;
  const int length = low.Constant(count, 1, dtype);
  // If the sum is stored before it is divided, it is rounded once more; for a power of two that is the rounding of the
  // mean.
  if (!IsPowerOfTwo(low.at(length)))
    low.Materialised(sum, (call.step.as.empty() ? "mean" : call.step.as) + ".sum");
  return low.Elementwise(NodeKind::kDiv, {sum, length}, dtype);
}

/// (x - mean) / sqrt(var + eps) * weight + bias over the last axes; var is the biased variance (torch.nn.functional.layer_norm).
///
/// Frameworks use several algebraic forms: two passes, Welford, E[x^2] - mean^2, x * scale + shift. The elementary steps
/// below are one of them; the slack of each step bounds what the others can differ by, in units of the format they
/// compute in: the variance of the one-pass form errs by a multiple of E[x^2], the folded affine form by multiples of
/// |x| rstd |w|, |mean| rstd |w| and |b|.
int LowerLayerNorm(Lowering& low, const OpCall& call) {
  const int x = call.args.at(0);
  const auto normalized = IntsAttr(call.step, "normalized_shape");
  const Shape shape = low.at(x).shape;
  if (normalized.empty() || normalized.size() > shape.size())
    throw LoweringError{"layer_norm: normalized_shape does not fit"};
  std::vector<int64_t> axes;
  int64_t count = 1;
  for (size_t i = shape.size() - normalized.size(); i < shape.size(); ++i) {
    axes.push_back(static_cast<int64_t>(i));
    count *= shape[i];
  }
  const DType own = low.at(x).dtype;
  const DType inner = own == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const std::string prefix = call.step.as.empty() ? "layer_norm" : call.step.as;
  const auto name = [&](int node, const char* part) { return low.Inner(node, prefix + "." + part); };
  const auto stored = [&](int node, const char* part) { return low.Materialised(node, prefix + "." + part); };
  const int length = low.Constant(count, 1, inner);
  const int eps = low.Scalar(NumberAttr(call.step, "eps", 1e-5), inner);

  const int mean = stored(
      low.Elementwise(NodeKind::kDiv, {name(low.Sum(x, axes, true, inner), "sum"), length}, inner), "mean");
  const int centered = name(low.Elementwise(NodeKind::kSub, {x, mean}, inner), "centered");
  const int square = name(low.Elementwise(NodeKind::kMul, {centered, centered}, inner), "square");
  const int variance =
      name(low.Elementwise(NodeKind::kDiv, {name(low.Sum(square, axes, true, inner), "square_sum"), length},
                           inner),
           "var");
  const int raw = low.Elementwise(
      NodeKind::kDiv, {low.Sum(low.Elementwise(NodeKind::kMul, {x, x}, inner), axes, true, inner), length},
      inner);
  low.Slack(variance, {raw}, static_cast<double>(count) + 8);
  const int shifted = name(low.Elementwise(NodeKind::kAdd, {variance, eps}, inner), "var_eps");
  low.Slack(shifted, {eps}, 2);
  const int rstd = stored(low.Elementwise(NodeKind::kRsqrt, {shifted}, inner), "rstd");
  low.Slack(rstd, {rstd}, 4);

  int result = low.Elementwise(NodeKind::kMul, {centered, rstd}, inner);
  std::vector<int> forms{low.Elementwise(NodeKind::kMul, {x, rstd}, inner),
                         low.Elementwise(NodeKind::kMul, {mean, rstd}, inner)};
  const bool affine = call.args.size() > 1;
  for (size_t i = 1; i < call.args.size(); ++i) {
    stored(result, i == 1 ? "normalized" : "scaled");
    result = low.Elementwise(i == 1 ? NodeKind::kMul : NodeKind::kAdd, {result, call.args[i]}, inner);
    if (i == 1) {
      for (int& form : forms) form = low.Elementwise(NodeKind::kMul, {form, call.args[i]}, inner);
    } else {
      forms.push_back(call.args[i]);
    }
  }
  low.Slack(result, forms, affine ? 8 : 6);
  low.at(result).dtype = own;
  low.at(result).inner = true;
  return result;
}

}  // namespace ulpscope
