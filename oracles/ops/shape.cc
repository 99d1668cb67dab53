// Views: transpose, reshape, expand, permute, select, squeeze.
#include <algorithm>

#include "oracles/ops/table.h"

namespace ulpscope {
namespace {

int64_t NeedInt(const Step& step, const std::string& name, std::optional<int64_t> otherwise) {
  const auto value = IntAttr(step, name);
  if (value) return *value;
  if (!otherwise) throw LoweringError{step.op + " needs " + name};
  return *otherwise;
}

}  // namespace

int LowerTranspose(Lowering& low, const OpCall& call) {
  const bool last_two = call.step.attrs.empty();
  if (call.step.op == "t" && low.at(call.args.at(0)).shape.size() < 2) return call.args[0];
  return low.Transpose(call.args.at(0), last_two && call.step.op != "t" ? -2 : NeedInt(call.step, "dim0", 0),
                       last_two && call.step.op != "t" ? -1 : NeedInt(call.step, "dim1", 1));
}

int LowerReshape(Lowering& low, const OpCall& call) {
  return low.Reshape(call.args.at(0), IntsAttr(call.step, "shape"));
}
int LowerExpand(Lowering& low, const OpCall& call) {
  return low.Expand(call.args.at(0), IntsAttr(call.step, "shape"));
}
int LowerPermute(Lowering& low, const OpCall& call) {
  return low.Permute(call.args.at(0), IntsAttr(call.step, "dims"));
}

int LowerSelect(Lowering& low, const OpCall& call) {
  return low.Select(call.args.at(0), NeedInt(call.step, "dim", 0), NeedInt(call.step, "index", std::nullopt));
}

int LowerUnsqueeze(Lowering& low, const OpCall& call) {
  Shape shape = low.at(call.args.at(0)).shape;
  int64_t dim = NeedInt(call.step, "dim", 0);
  if (dim < 0) dim += static_cast<int64_t>(shape.size()) + 1;
  shape.insert(shape.begin() + dim, 1);
  return low.Reshape(call.args[0], shape);
}

int LowerSqueeze(Lowering& low, const OpCall& call) {
  Shape shape = low.at(call.args.at(0)).shape, kept;
  const bool all = call.step.Find("dim") == nullptr;
  const std::vector<int64_t> dims = IntsAttr(call.step, "dim");
  const auto named = [&](size_t axis) {
    const auto place = static_cast<int64_t>(axis), rank = static_cast<int64_t>(shape.size());
    return std::ranges::any_of(dims, [&](int64_t dim) { return dim == place || dim + rank == place; });
  };
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] != 1 || !(all || named(axis))) kept.push_back(shape[axis]);
  }
  return low.Reshape(call.args[0], kept);
}

}  // namespace ulpscope
