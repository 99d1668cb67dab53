// Ops that count: sequences of numbers, and numbers as places.
#include <algorithm>
#include <cmath>

#include "oracles/ops/composite.h"

namespace ulpscope {

/// start + i * step. PyTorch counts the second half back from the end; the slack bounds both.
int LowerLinspace(Lowering& low, const OpCall& call) {
  const int64_t count = IntAttr(call.step, "num").value_or(0);
  if (count < 1) throw LoweringError{"linspace: num is positive"};
  const DType dtype = DTypeAttr(call.step, "dtype").value_or(DType::kFloat32);
  const DType inner = dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const std::string prefix = call.step.as.empty() ? "linspace" : call.step.as;
  const int first = low.Scalar(NumberAttr(call.step, "start", 0), inner),
            last = low.Scalar(NumberAttr(call.step, "end", 0), inner);
  const int span = low.Inner(low.Elementwise(NodeKind::kSub, {last, first}, inner), prefix + ".span");
  const int between = low.Constant(std::max<int64_t>(1, count - 1), 1, inner);
  const int step =
      low.Materialised(low.Elementwise(NodeKind::kDiv, {span, between}, inner), prefix + ".step");
  const int offset = low.Materialised(
      low.Elementwise(NodeKind::kMul, {low.Count(0, 1, count, inner), step}, inner), prefix + ".offset");
  const int result = low.Elementwise(NodeKind::kAdd, {first, offset}, inner);
  low.Slack(result, {first, last}, 8);
  low.at(result).dtype = dtype;
  low.at(result).inner = true;
  return result;
}

/// start, start + step, ... below end.
int LowerArange(Lowering& low, const OpCall& call) {
  const double start = NumberAttr(call.step, "start", 0), end = NumberAttr(call.step, "end", 0),
               step = NumberAttr(call.step, "step", 1);
  const double count = std::ceil((end - start) / step);
  if (!(count >= 0) || count > 1e9) throw LoweringError{"arange: the bounds and the step do not agree"};
  const DType dtype = DTypeAttr(call.step, "dtype").value_or(DType::kInt64);
  return low.Store(low.Count(start, step, static_cast<int64_t>(count), dtype), dtype);
}

int LowerOneHot(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  const auto classes = IntAttr(call.step, "num_classes");
  if (!classes) throw LoweringError{"one_hot needs num_classes"};
  Shape shape = low.at(call.args[0]).shape;
  shape.push_back(1);
  const int numbers = low.Count(0, 1, *classes, DType::kInt64);
  const int hot =
      low.Elementwise(NodeKind::kEqual, {low.Reshape(call.args[0], shape), numbers}, DType::kBool);
  return low.Store(hot, DType::kInt64);
}

}  // namespace ulpscope
