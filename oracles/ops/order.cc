// Ops with several results: ordered results (topk, sort, max, min), statistics in pairs, parts of a tensor. A step
// selects one of the results by its attribute `result`.
#include <algorithm>
#include <cmath>

#include "harness/words/ops.h"
#include "oracles/ops/composite.h"

namespace ulpscope {
namespace {

/// Which result the step names; `count` of them are there.
int64_t ResultOf(const OpCall& call, int64_t count) {
  const int64_t result = IntAttr(call.step, std::string(kResultKey)).value_or(0);
  if (result < 0 || result >= count)
    throw LoweringError{call.step.op + ": has " + std::to_string(count) + " results, and no result " +
                        std::to_string(result)};
  return result;
}

int64_t AxisAlong(const OpCall& call, const Shape& shape, int64_t otherwise) {
  const int64_t dim = IntAttr(call.step, "dim").value_or(otherwise),
                rank = static_cast<int64_t>(shape.size());
  if (dim < -rank || dim >= rank) throw LoweringError{call.step.op + ": dimension out of range"};
  return dim < 0 ? dim + rank : dim;
}

/// The first `count` of the order along `dim`, values or places.
int FirstOf(Lowering& low, const OpCall& call, int64_t dim, int64_t count, Ranking ranking) {
  constexpr int64_t kMost = 256;  // each place of the order is a step of its own
  const bool places = ResultOf(call, 2) == 1;
  const int x = call.args[0];
  if (count < 1 || count > low.at(x).shape[static_cast<size_t>(dim)])
    throw LoweringError{call.step.op + ": as many elements are not there"};
  if (count > kMost)
    throw LoweringError{"the oracle orders no more than " + std::to_string(kMost) + " elements"};
  std::vector<int> ranked;
  for (ranking.place = 0; ranking.place < count; ++ranking.place)
    ranked.push_back(low.Ranked(places ? NodeKind::kPlace : NodeKind::kRanked, x, dim, ranking));
  const DType dtype = places ? DType::kInt64 : low.at(x).dtype;
  return low.Store(low.Join(ranked, dim, dtype), dtype);
}

/// The largest or the smallest along `dim`. A NaN is both.
int Extreme(Lowering& low, const OpCall& call, bool largest) {
  NeedOperands(call, 1, 1);
  const Shape shape = low.at(call.args[0]).shape;
  const int64_t dim = AxisAlong(call, shape, 0);
  const int found = FirstOf(low, call, dim, 1, {.descending = largest, .nan_first = true});
  return BoolAttr(call.step, "keepdim", false) ? found : low.Select(found, dim, 0);
}

/// Index of the largest or the smallest element, the first of equals: along a dimension, or in all elements
/// one after the other.
int PlaceOfExtreme(Lowering& low, const OpCall& call, bool largest) {
  NeedOperands(call, 1, 1);
  const int x = call.args[0];
  const Shape shape = low.at(x).shape;
  const bool keepdim = BoolAttr(call.step, "keepdim", false), all = !IntAttr(call.step, "dim");
  const int line = all ? low.Reshape(x, {ElementCount(shape)}) : x;
  const int64_t dim = all ? 0 : AxisAlong(call, shape, 0);
  const int place =
      low.Ranked(NodeKind::kPlace, line, dim, {.descending = largest, .nan_first = true, .stable = true});
  if (all) return low.Reshape(place, keepdim ? Shape(shape.size(), 1) : Shape{});
  return keepdim ? place : low.Select(place, dim, 0);
}

/// The largest or the smallest of truth values; a NaN is true.
int YesOf(Lowering& low, const OpCall& call, bool every) {
  NeedOperands(call, 1, 1);
  int x = call.args[0];
  if (low.at(x).dtype == DType::kUint8) throw LoweringError{call.step.op + ": of uint8 PyTorch gives uint8"};
  if (low.at(x).dtype != DType::kBool) {
    x = low.Elementwise(NodeKind::kNot, {low.Elementwise(NodeKind::kNot, {x}, DType::kBool)}, DType::kBool);
  }
  const auto axes = IntsAttr(call.step, "dim");
  const bool keepdim = BoolAttr(call.step, "keepdim", false);
  return every ? low.Minimum(x, axes, keepdim) : low.Maximum(x, axes, keepdim);
}

/// The second result of var_mean and std_mean: kernels add up, or go from mean to mean (Welford), whose every step rounds a mean of the
/// elements so far: their sum is at most the sum of sizes times the harmonic number of the count.
int MeanBeside(Lowering& low, const OpCall& call) {
  Composite op(low, call);
  const int x = call.args[0];
  const auto axes = IntsAttr(call.step, "dim");
  const bool keepdim = BoolAttr(call.step, "keepdim", false);
  const int sum = low.Inner(low.Sum(x, axes, keepdim, op.inner()), op.Part("sum"));
  const int64_t count = low.at(low.plan.Root(sum)).terms();
  const int mean = op.Step(NodeKind::kDiv, {sum, low.Constant(count, 1, op.inner())}, "mean");
  const int sizes = low.Sum(low.Elementwise(NodeKind::kAbs, {x}, op.inner()), axes, keepdim, op.inner());
  return op.Result(op.Slack(mean, {sizes}, 3 * std::log(count) + 8));
}

/// Part `result` of `x`, split along `dim` into parts of these extents.
int PartOf(Lowering& low, const OpCall& call, int64_t dim, const std::vector<int64_t>& extents) {
  const int64_t result = ResultOf(call, static_cast<int64_t>(extents.size()));
  int64_t start = 0;
  for (int64_t i = 0; i < result; ++i) start += extents[static_cast<size_t>(i)];
  return low.Slice(call.args[0], dim, start, start + extents[static_cast<size_t>(result)], 1);
}

/// As many parts of `size` as fit into `extent`, and the remainder.
std::vector<int64_t> Evenly(int64_t extent, int64_t size) {
  if (size < 1) throw LoweringError{"a part has no extent"};
  std::vector<int64_t> extents;
  for (int64_t start = 0; start < extent; start += size) extents.push_back(std::min(size, extent - start));
  return extents;
}

}  // namespace

int LowerTopk(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  if (!BoolAttr(call.step, "sorted", true)) throw LoweringError{"topk: without sorted any order is right"};
  const bool largest = BoolAttr(call.step, "largest", true);
  return FirstOf(low, call, AxisAlong(call, low.at(call.args[0]).shape, -1),
                 IntAttr(call.step, "k").value_or(0), {.descending = largest, .nan_first = largest});
}

int LowerSort(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  const Shape shape = low.at(call.args[0]).shape;
  const int64_t dim = AxisAlong(call, shape, -1);
  const bool descending = BoolAttr(call.step, "descending", false);
  return FirstOf(
      low, call, dim, shape[static_cast<size_t>(dim)],
      {.descending = descending, .nan_first = descending, .stable = BoolAttr(call.step, "stable", false)});
}

int LowerMax(Lowering& low, const OpCall& call) { return Extreme(low, call, true); }
int LowerMin(Lowering& low, const OpCall& call) { return Extreme(low, call, false); }

int LowerArgmax(Lowering& low, const OpCall& call) { return PlaceOfExtreme(low, call, true); }
int LowerArgmin(Lowering& low, const OpCall& call) { return PlaceOfExtreme(low, call, false); }
int LowerAny(Lowering& low, const OpCall& call) { return YesOf(low, call, false); }
int LowerAll(Lowering& low, const OpCall& call) { return YesOf(low, call, true); }

int LowerAminmax(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  const auto axes = IntsAttr(call.step, "dim");
  const bool keepdim = BoolAttr(call.step, "keepdim", false);
  return ResultOf(call, 2) == 0 ? low.Minimum(call.args[0], axes, keepdim)
                                : low.Maximum(call.args[0], axes, keepdim);
}

int LowerVarMean(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  return ResultOf(call, 2) == 0 ? LowerVar(low, call) : MeanBeside(low, call);
}

int LowerStdMean(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  return ResultOf(call, 2) == 0 ? LowerStd(low, call) : MeanBeside(low, call);
}

int LowerSplit(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  const Shape shape = low.at(call.args[0]).shape;
  const int64_t dim = AxisAlong(call, shape, 0), extent = shape[static_cast<size_t>(dim)];
  const auto sizes = IntsAttr(call.step, "split_size");
  const bool listed = call.step.Find("split_size")->If<Attr::List>() != nullptr;
  int64_t total = 0;
  for (const int64_t size : sizes) total += size;
  if (listed && total != extent) throw LoweringError{"split: the parts are not the whole"};
  return PartOf(low, call, dim, listed ? sizes : Evenly(extent, sizes.at(0)));
}

int LowerChunk(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  const Shape shape = low.at(call.args[0]).shape;
  const int64_t dim = AxisAlong(call, shape, 0), extent = shape[static_cast<size_t>(dim)];
  const int64_t chunks = IntAttr(call.step, "chunks").value_or(0);
  if (chunks < 1) throw LoweringError{"chunk: at least one part"};
  return PartOf(low, call, dim, Evenly(extent, (extent + chunks - 1) / chunks));
}

int LowerUnbind(Lowering& low, const OpCall& call) {
  NeedOperands(call, 1, 1);
  const Shape shape = low.at(call.args[0]).shape;
  const int64_t dim = AxisAlong(call, shape, 0);
  return low.Select(call.args[0], dim, ResultOf(call, shape[static_cast<size_t>(dim)]));
}

}  // namespace ulpscope
