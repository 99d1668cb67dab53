// softmax, log_softmax, logsumexp and rms_norm: composites around one sum.
//
// Frameworks shift by the maximum (in one pass or two), by exp or by exp2 of a scaled argument, and divide or
// multiply by a reciprocal. The steps below are one of these forms; the slack of each bounds the others, in
// units of the format that they compute in.
#include <limits>
#include <utility>

#include "oracles/ops/table.h"

namespace ulpscope {
namespace {

/// exp(x - max) and its sum over one axis, with the names under which frameworks may round them.
struct Exponentials {
  DType own, inner;
  std::string prefix;
  std::vector<int64_t> axis;
  int x, top, shifted, exp, total;
};

std::vector<int64_t> OneAxis(const OpCall& call) {
  const auto dim = IntsAttr(call.step, "dim");
  if (dim.size() != 1) throw LoweringError{call.step.op + " needs one dim"};
  return dim;
}

/// The reader of the exponentials besides their sum: compilers may round them for one reader and not for the
/// other.
enum class OtherUse { kNone, kNumerator };

Exponentials MakeExponentials(Lowering& low, const OpCall& call, int x, const std::vector<int64_t>& axis,
                              OtherUse other = OtherUse::kNone, NodeKind exp = NodeKind::kExp) {
  Exponentials made;
  made.own = low.at(x).dtype;
  made.inner = made.own == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  made.prefix = call.step.as.empty() ? call.step.op : call.step.as;
  made.x = x;
  made.axis = axis;
  const auto stored = [&](int node, const char* part) {
    return low.Materialised(node, made.prefix + "." + part);
  };
  // No result depends on the maximum, so no gradient goes through it.
  const bool with_gradient = std::exchange(low.grad_enabled, false);
  made.top = low.Inner(low.Maximum(x, axis, true), made.prefix + ".max");
  low.grad_enabled = with_gradient;
  made.shifted = stored(low.Elementwise(NodeKind::kSub, {x, made.top}, made.inner), "shifted");
  low.Slack(made.shifted, {x, made.top}, 2);
  // PyTorch's vectorised softmax takes an exponential of its own, good to 20 units (exp_u20 in its vector
  // headers).
  made.exp = stored(low.Elementwise(exp, {made.shifted}, made.inner), "exp");
  low.Slack(made.exp, {made.exp}, 40);
  int summed = made.exp;
  if (other == OtherUse::kNumerator) {
    summed = low.Inner(low.Store(made.exp, made.inner), made.prefix + ".exp_in_denominator");
    made.exp = low.Inner(low.Store(made.exp, made.inner), made.prefix + ".exp_in_numerator");
  }
  made.total = stored(low.Sum(summed, axis, true, made.inner), "total");
  return made;
}

Exponentials MakeExponentials(Lowering& low, const OpCall& call, OtherUse other = OtherUse::kNone) {
  int x = call.args.at(0);
  if (const auto dtype = DTypeAttr(call.step, "dtype"); dtype && *dtype != low.at(x).dtype) {
    x = low.Cast(x, *dtype);
    if (!call.step.as.empty()) low.at(x).name = call.step.as + ".operand";
  }
  return MakeExponentials(low, call, x, OneAxis(call), other);
}

int Finish(Lowering& low, const Exponentials& parts, int result, std::vector<int> slack, double factor) {
  low.Slack(result, std::move(slack), factor);
  low.at(result).dtype = parts.own;
  low.at(result).inner = true;
  return result;
}

/// The steps of a gradient: named after the result that they go back from.
class Backwards {
 public:
  Backwards(Lowering& low, const Exponentials& parts) : low_(low), parts_(parts) {}

  int Stored(NodeKind kind, std::vector<int> args, const char* part, double slack = 0) {
    const int node = low_.Materialised(low_.Elementwise(kind, std::move(args), parts_.inner), Name(part));
    return Slack(node, {node}, slack);
  }
  int Sum(int node, const char* part) {
    return low_.Materialised(low_.Sum(node, parts_.axis, true, parts_.inner), Name(part));
  }
  int Slack(int node, std::vector<int> of, double factor) {
    if (factor == 0) return node;
    low_.Slack(node, std::move(of), factor);
    return node;
  }
  int Result(NodeKind kind, int a, int b, std::vector<int> slack, double factor) {
    const int result = low_.Elementwise(kind, {a, b}, parts_.inner);
    low_.at(result).dtype = parts_.own;
    low_.at(result).inner = true;
    if (slack.empty()) slack = {result};
    return Slack(result, std::move(slack), factor);
  }

 private:
  std::string Name(const char* part) const { return parts_.prefix + ".grad_" + part; }

  Lowering& low_;
  const Exponentials& parts_;
};

}  // namespace

/// Backwards: y g - y sum(y g), or y (g - sum(y g)).
int LowerSoftmax(Lowering& low, const OpCall& call) {
  const Exponentials parts = MakeExponentials(low, call, OtherUse::kNumerator);
  int result = low.Elementwise(NodeKind::kDiv, {parts.exp, parts.total}, parts.inner);
  result = Finish(low, parts, result, {result}, 12);
  low.own_gradients[result] = {
      parts.x, [parts, result](Lowering& to, int grad) {
        Backwards steps(to, parts);
        const int product = steps.Stored(NodeKind::kMul, {grad, result}, "product", 2);
        const int total = steps.Sum(product, "total");
        const int share = steps.Stored(NodeKind::kMul, {result, total}, "share");
        return steps.Result(NodeKind::kSub, product, share, {product, share}, 6);
      }};
  return result;
}

/// (exp(s - max) @ value) / sum(exp(s - max)) with s = query @ key.mT * scale: the order of fused kernels, which
/// never hold a probability. Others scale the query, or both operands by the root, and divide before the second
/// product.
namespace {

/// Each head of x, along the third axis from the end, `times` times in a row.
int SharedHeads(Lowering& low, int x, int64_t times) {
  Shape apart = low.at(x).shape, together = apart;
  const auto heads = apart.end() - 3;
  together[together.size() - 3] *= times;
  Shape shown = apart;
  const auto at = static_cast<size_t>(heads - apart.begin()) + 1;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(at), 1);
  shown.insert(shown.begin() + static_cast<std::ptrdiff_t>(at), times);
  return low.Reshape(low.Expand(low.Reshape(x, apart), shown), together);
}

/// Scores of keys that a query does not see are minus infinity; a mask of numbers is added.
int MaskedScores(Lowering& low, const OpCall& call, int scores, DType inner) {
  const auto hide = [&](int kept) {
    const int hidden = low.Scalar(-std::numeric_limits<double>::infinity(), inner);
    scores = low.Elementwise(NodeKind::kChoose, {scores, hidden, kept}, inner);
  };
  if (BoolAttr(call.step, "is_causal", false)) {
    const Shape shape = low.at(scores).shape;
    const int64_t rows = shape[shape.size() - 2];
    const int row = low.Reshape(low.Count(0, 1, rows, DType::kInt64), {rows, 1});
    const int column = low.Count(0, 1, shape.back(), DType::kInt64);
    hide(low.Elementwise(NodeKind::kLessEqual, {column, row}, DType::kBool));
  }
  if (call.args.size() < 4) return scores;
  const int mask = call.args[3];
  if (low.at(mask).dtype != DType::kBool) return low.Elementwise(NodeKind::kAdd, {scores, mask}, inner);
  hide(mask);
  return scores;
}

}  // namespace

int LowerScaledDotProductAttention(Lowering& low, const OpCall& call) {
  const int query = call.args.at(0);
  int key = call.args.at(1), value = call.args.at(2);
  const Shape shape = low.at(query).shape;
  if (shape.size() < 2 || low.at(key).shape.size() < 2 || low.at(value).shape.size() < 2)
    throw LoweringError{"scaled_dot_product_attention: needs matrices"};
  if (BoolAttr(call.step, "enable_gqa", false)) {
    const Shape few = low.at(key).shape;
    if (shape.size() < 3 || few.size() < 3 || few[few.size() - 3] < 1 ||
        shape[shape.size() - 3] % few[few.size() - 3] != 0)
      throw LoweringError{"scaled_dot_product_attention: the heads of query are no multiple of those of key"};
    const int64_t times = shape[shape.size() - 3] / few[few.size() - 3];
    key = SharedHeads(low, key, times);
    value = SharedHeads(low, value, times);
  }
  const DType own = low.at(query).dtype, inner = own == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const std::string prefix = call.step.as.empty() ? call.step.op : call.step.as;
  const auto product = [&](int a, int b, const char* part) {
    const int node = low.Matmul(a, b);
    low.at(low.plan.Root(node)).dtype = inner;
    low.at(node).dtype = inner;
    return low.Inner(node, prefix + "." + part);
  };
  const auto absolute = [&](int node) { return low.Elementwise(NodeKind::kAbs, {node}, inner); };
  const int scores = product(query, low.Transpose(key, -2, -1), "scores");
  const int scale = call.step.Find("scale") != nullptr
                        ? low.Scalar(NumberAttr(call.step, "scale", 1), inner)
                        : low.Elementwise(NodeKind::kRsqrt, {low.Constant(shape.back(), 1, inner)}, inner);
  const int scaled = low.Inner(low.Elementwise(NodeKind::kMul, {scores, scale}, inner), prefix + ".scaled");
  low.Slack(
      scaled,
      {low.Elementwise(NodeKind::kMul,
                       {low.Matmul(absolute(query), low.Transpose(absolute(key), -2, -1)), scale}, inner)},
      4);
  const Exponentials parts =
      MakeExponentials(low, call, MaskedScores(low, call, scaled, inner), {-1}, OtherUse::kNumerator,
                       BoolAttr(call.step, "fast_exp", false) ? NodeKind::kFastExp : NodeKind::kExp);
  // Kernels that hold the probabilities store them in the operands' format.
  if (BoolAttr(call.step, "divided_first", false)) {
    const int shares = low.Materialised(low.Elementwise(NodeKind::kDiv, {parts.exp, parts.total}, inner),
                                        prefix + ".probabilities");
    low.Slack(shares, {shares}, 12);
    int result = product(shares, value, "weighted");
    low.at(low.plan.Root(result)).dtype = own;
    low.at(result).dtype = own;
    return result;
  }
  const int weighted = product(parts.exp, value, "weighted");
  const int magnitude = low.Matmul(parts.exp, absolute(value));
  int result = low.Elementwise(NodeKind::kDiv, {weighted, parts.total}, inner);
  const int slack = low.Elementwise(NodeKind::kDiv, {magnitude, parts.total}, inner);
  low.Slack(result, {slack}, 16);
  low.at(result).dtype = own;
  low.at(result).inner = true;
  return result;
}

/// Backwards: g - exp(y) sum(g).
int LowerLogSoftmax(Lowering& low, const OpCall& call) {
  const Exponentials parts = MakeExponentials(low, call);
  const int log = low.Materialised(low.Elementwise(NodeKind::kLog, {parts.total}, parts.inner),
                                   parts.prefix + ".log_total");
  const int result = Finish(low, parts, low.Elementwise(NodeKind::kSub, {parts.shifted, log}, parts.inner),
                            {parts.shifted, parts.top, log}, 4);
  low.own_gradients[result] = {
      parts.x, [parts, result](Lowering& to, int grad) {
        Backwards steps(to, parts);
        const int exp = steps.Stored(NodeKind::kExp, {result}, "exp", 40);
        const int share = steps.Stored(NodeKind::kMul, {exp, steps.Sum(grad, "total")}, "share");
        return steps.Result(NodeKind::kSub, grad, share, {grad, share}, 6);
      }};
  return result;
}

/// Backwards: g exp(x - y).
int LowerLogsumexp(Lowering& low, const OpCall& call) {
  const Exponentials parts = MakeExponentials(low, call);
  const int log = low.Materialised(low.Elementwise(NodeKind::kLog, {parts.total}, parts.inner),
                                   parts.prefix + ".log_total");
  const int result =
      Finish(low, parts, low.Elementwise(NodeKind::kAdd, {parts.top, log}, parts.inner), {parts.top, log}, 4);
  low.own_gradients[result] = {
      parts.x, [parts, result](Lowering& to, int grad) {
        Backwards steps(to, parts);
        const int away = steps.Stored(NodeKind::kSub, {parts.x, result}, "shifted");
        steps.Slack(away, {parts.x, result}, 4);
        return steps.Result(NodeKind::kMul, steps.Stored(NodeKind::kExp, {away}, "exp", 40), grad, {}, 4);
      }};
  if (BoolAttr(call.step, "keepdim", false)) return result;
  Shape shape = low.at(result).shape;
  const int64_t dim = OneAxis(call)[0];
  shape.erase(shape.begin() +
              static_cast<std::ptrdiff_t>(dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim));
  return low.Reshape(result, shape);
}

/// x / sqrt(mean(x^2) + eps) * weight over the last axes (torch.nn.functional.rms_norm).
int LowerRmsNorm(Lowering& low, const OpCall& call) {
  const int x = call.args.at(0);
  const auto normalized = IntsAttr(call.step, "normalized_shape");
  const Shape shape = low.at(x).shape;
  if (normalized.empty() || normalized.size() > shape.size())
    throw LoweringError{"rms_norm: normalized_shape does not fit"};
  std::vector<int64_t> axes;
  int64_t count = 1;
  for (size_t i = shape.size() - normalized.size(); i < shape.size(); ++i) {
    axes.push_back(static_cast<int64_t>(i));
    count *= shape[i];
  }
  const DType own = low.at(x).dtype, inner = own == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const std::string prefix = call.step.as.empty() ? "rms_norm" : call.step.as;
  const auto name = [&](int node, const char* part) { return low.Inner(node, prefix + "." + part); };
  const auto stored = [&](int node, const char* part) { return low.Materialised(node, prefix + "." + part); };
  const int square = name(low.Elementwise(NodeKind::kMul, {x, x}, inner), "square");
  const int mean = stored(
      low.Elementwise(NodeKind::kDiv,
                      {name(low.Sum(square, axes, true, inner), "square_sum"), low.Constant(count, 1, inner)},
                      inner),
      "mean");
  low.Slack(mean, {mean}, 2);
  const int eps = low.Scalar(NumberAttr(call.step, "eps", 0), inner);
  const int shifted = name(low.Elementwise(NodeKind::kAdd, {mean, eps}, inner), "mean_eps");
  low.Slack(shifted, {eps}, 2);
  const int rstd = stored(low.Elementwise(NodeKind::kRsqrt, {shifted}, inner), "rstd");
  low.Slack(rstd, {rstd}, 4);
  int result = low.Elementwise(NodeKind::kMul, {x, rstd}, inner);
  if (call.args.size() > 1)
    result = low.Elementwise(NodeKind::kMul, {stored(result, "normalized"), call.args[1]}, inner);
  low.Slack(result, {result}, 6);
  low.at(result).dtype = own;
  low.at(result).inner = true;
  return result;
}

int LowerAmax(Lowering& low, const OpCall& call) {
  return low.Maximum(call.args.at(0), IntsAttr(call.step, "dim"), BoolAttr(call.step, "keepdim", false));
}

}  // namespace ulpscope
