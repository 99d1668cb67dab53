// Matrix products: matmul, mm, bmm, addmm, baddbmm, linear, fsdp_linear.
#include "oracles/ops/table.h"

namespace ulpscope {
namespace {

void Need(const OpCall& call, size_t least, size_t most) {
  if (call.args.size() < least || call.args.size() > most)
    throw LoweringError{call.step.op + ": wrong number of operands"};
}

/// out_dtype= and preferred_element_type= request another result dtype of the op itself.
int WithAskedDtype(Lowering& low, int result, const Step& step) {
  auto asked = DTypeAttr(step, "out_dtype");
  if (!asked) asked = DTypeAttr(step, "preferred_element_type");
  if (!asked) asked = DTypeAttr(step, "dtype");
  if (asked) {
    low.at(low.plan.Root(result)).dtype = *asked;
    low.at(result).dtype = *asked;
  }
  return result;
}

}  // namespace

int LowerMatmul(Lowering& low, const OpCall& call) {
  Need(call, 2, 2);
  return WithAskedDtype(low, low.Matmul(call.args[0], call.args[1]), call.step);
}

int LowerAddmm(Lowering& low, const OpCall& call) {
  Need(call, 3, 3);
  const double alpha = NumberAttr(call.step, "alpha", 1), beta = NumberAttr(call.step, "beta", 1);
  return WithAskedDtype(low, low.Matmul(call.args[1], call.args[2], call.args[0], alpha, beta), call.step);
}

/// x @ weight^T + bias. The bias is an addend of the same accumulation: backends that round the product
/// before adding it show MID, which the candidate models cover by the cut between the two.
int LowerLinear(Lowering& low, const OpCall& call) {
  Need(call, 2, 3);
  const int weight =
      low.at(call.args[1]).shape.size() == 1 ? call.args[1] : low.Transpose(call.args[1], 0, 1);
  return low.Matmul(call.args[0], weight, call.args.size() == 3 ? call.args[2] : -1);
}

/// A linear layer under fully sharded data parallelism at world size 1: input and parameters are cast to the
/// compute dtype, the layer runs in it, and a gradient computed in it is stored in the dtype of the parameter
/// that was sharded. That is what autocast demands of a linear layer, by other means.
int LowerFsdpLinear(Lowering& low, const OpCall& call) {
  const auto compute = DTypeAttr(call.step, "compute_dtype");
  if (!compute) throw LoweringError{"fsdp_linear needs compute_dtype"};
  const auto autocast = low.autocast;
  low.autocast = *compute;
  const int result = LowerLinear(low, call);
  low.autocast = autocast;
  return result;
}

}  // namespace ulpscope
