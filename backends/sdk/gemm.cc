// Matrix products: operands, result dtype, shapes.
#include "backends/sdk/gemm.h"

#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/words/knobs.h"
#include "harness/words/promotion.h"

namespace ulpscope::sdk {
namespace {

std::string Shapes(const TensorData& a, const TensorData& b) {
  return Describe(a.dtype, a.shape) + " and " + Describe(b.dtype, b.shape);
}

/// Operands in the order of PyTorch's arguments, in the roles that they play.
std::optional<GemmOperands> InRoles(const Step& step, const GlueContext& context) {
  std::vector<const TensorData*> tensors;
  for (const Operand& operand : step.of) {
    tensors.push_back(context.Tensor(operand));
    if (tensors.back() == nullptr) return std::nullopt;
  }
  const bool adds = step.op == "addmm" || step.op == "baddbmm";
  if (adds) {
    if (tensors.size() != 3) return std::nullopt;
    return GemmOperands{.a = *tensors[1], .b = *tensors[2], .c = *tensors[0]};
  }
  if (step.op == "linear" && tensors.size() == 3)
    return GemmOperands{.a = *tensors[0], .b = *tensors[1], .c = *tensors[2]};
  if (tensors.size() != 2) return std::nullopt;
  return GemmOperands{.a = *tensors[0], .b = *tensors[1], .c = std::nullopt};
}

tl::expected<DType, StepFailure> ResultDType(const Step& step, const GemmOperands& operands,
                                             const GlueContext& context) {
  if (const std::optional<DType> out = context.OutDType(step)) return *out;
  for (const char* key : {"preferred_element_type", "out_dtype"}) {
    if (step.Find(key) == nullptr) continue;
    const Result<DType> asked = ReadDType(step, key);
    if (!asked) return StepUnsupported(asked.error().message);
    return *asked;
  }
  std::optional<DType> declared = Promote(operands.a.dtype, operands.b.dtype);
  if (declared && operands.c) declared = Promote(*declared, operands.c->dtype);
  if (!declared) return StepUnsupported(step.op + ": no common dtype of the operands");
  return *declared;
}

bool RankIsWrong(const Step& step, const GemmOperands& operands) {
  const size_t rank = step.op == "mm" || step.op == "addmm"      ? 2
                      : step.op == "bmm" || step.op == "baddbmm" ? 3
                                                                 : 0;
  return (rank != 0 && (operands.a.shape.size() != rank || operands.b.shape.size() != rank)) ||
         (rank == 3 && operands.a.shape[0] != operands.b.shape[0]) ||
         (step.op == "linear" && operands.b.shape.size() != 2);
}

std::optional<StepFailure> WhatIsWrong(const Step& step, const GemmOperands& operands) {
  const auto unsupported = [&](DType dtype, const char* how) {
    return StepFailure{.outcome = Outcome::kUnsupported, .text = step.op + how + std::string(Name(dtype))};
  };
  if (RankIsWrong(step, operands)) {
    return StepFailure{.outcome = Outcome::kRaised,
                       .error_class = "RuntimeError",
                       .text = step.op + ": wrong shapes " + Shapes(operands.a, operands.b)};
  }
  for (const DType dtype :
       {operands.a.dtype, operands.b.dtype, operands.c ? operands.c->dtype : DType::kFloat32}) {
    if (!IsFloating(dtype)) return unsupported(dtype, " of ");
  }
  if (!IsFloating(operands.result)) return unsupported(operands.result, " into ");
  return std::nullopt;
}

/// The last two axes of `tensor`, with the batch axes broadcast to `batch` and flattened into one.
TensorData Flattened(const TensorData& tensor, const Shape& batch) {
  Shape shape = batch;
  shape.insert(shape.end(), tensor.shape.end() - 2, tensor.shape.end());
  TensorData flat = BroadcastTo(tensor, shape);
  flat.shape = {ElementCount(batch), shape[shape.size() - 2], shape[shape.size() - 1]};
  return flat;
}

Shape BatchAxes(const TensorData& tensor) { return Shape(tensor.shape.begin(), tensor.shape.end() - 2); }

/// torch.matmul's shapes: a 1-D operand gains an axis that the result loses again; batch axes broadcast.
tl::expected<GemmProblem, StepFailure> WithShapes(TensorData a, TensorData b, GemmLayout b_layout) {
  if (a.shape.empty() || b.shape.empty())
    return StepRaised("RuntimeError", "matmul of a 0-dim tensor: " + Shapes(a, b));
  const bool a_is_vector = a.shape.size() == 1;
  const bool b_is_vector = b.shape.size() == 1;
  if (a_is_vector) a.shape.insert(a.shape.begin(), 1);
  if (b_is_vector) b.shape.push_back(1);
  const std::optional<Shape> batch = BroadcastShape(BatchAxes(a), BatchAxes(b));
  const size_t inner = b.shape.size() - (b_layout == GemmLayout::kRows ? 2 : 1);
  if (!batch || a.shape.back() != b.shape[inner])
    return StepRaised("RuntimeError", "matrices do not go together: " + Shapes(a, b));
  GemmProblem problem;
  problem.a = Flattened(a, *batch);
  problem.b = Flattened(b, *batch);
  problem.b_layout = b_layout;
  problem.shape = *batch;
  if (!a_is_vector) problem.shape.push_back(problem.m());
  if (!b_is_vector) problem.shape.push_back(problem.n());
  return problem;
}

}  // namespace

const std::vector<std::string>& GemmOps() {
  static const std::vector<std::string> ops = {"matmul", "mm", "bmm", "linear", "addmm", "baddbmm"};
  return ops;
}

Capabilities GemmCapabilities(const std::string& name) {
  Capabilities can;
  can.name = name;
  can.backends = {name};
  can.knobs = KnobsTakenBy(name, "cpu");
  can.ops = GlueOps();
  can.ops.insert(can.ops.end(), GemmOps().begin(), GemmOps().end());
  can.dtypes = AllDTypeNames();
  can.scopes = {"no_grad", "enable_grad"};
  can.capabilities = {"out", "preferred_element_type"};
  return can;
}

std::optional<int> ThreadCount(const std::string& text) {
  constexpr int kMostThreads = 1024;
  const auto count = WholeNumber<int>(text);
  return count && *count >= 1 && *count <= kMostThreads ? count : std::nullopt;
}

std::optional<tl::expected<GemmOperands, StepFailure>> TakeGemmOperands(const Step& step,
                                                                        const GlueContext& context) {
  if (!Contains(GemmOps(), step.op)) return std::nullopt;
  std::optional<GemmOperands> operands = InRoles(step, context);
  if (!operands) return StepUnsupported(step.op + ": wrong number or kind of operands");
  operands->result = ULPSCOPE_TRY(ResultDType(step, *operands, context));
  if (const std::optional<StepFailure> wrong = WhatIsWrong(step, *operands)) return tl::unexpected(*wrong);
  return std::move(*operands);
}

tl::expected<GemmProblem, StepFailure> MakeGemmProblem(const Step& step, GemmOperands operands) {
  const bool linear = step.op == "linear";
  tl::expected<GemmProblem, StepFailure> problem = WithShapes(
      std::move(operands.a), std::move(operands.b), linear ? GemmLayout::kTransposed : GemmLayout::kRows);
  if (!problem) return problem;
  problem->result = operands.result;
  const Result<double> alpha = ReadNumber(step, "alpha", 1.0);
  const Result<double> beta = ReadNumber(step, "beta", 1.0);
  if (!alpha || !beta) return StepUnsupported((alpha ? beta : alpha).error().message);
  problem->alpha = *alpha;
  problem->beta = *beta;
  if (!operands.c) return problem;
  if (BroadcastShape(operands.c->shape, problem->shape) != problem->shape) {
    return StepRaised("RuntimeError", step.op + ": the addend " +
                                          Describe(operands.c->dtype, operands.c->shape) +
                                          " does not broadcast to the result");
  }
  if (linear && operands.c->shape == Shape{problem->n()}) {
    problem->bias = std::move(*operands.c);
    return problem;
  }
  problem->c = BroadcastTo(*operands.c, problem->shape);
  problem->c->shape = {problem->batch(), problem->m(), problem->n()};
  return problem;
}

void SpreadBias(GemmProblem& problem) {
  if (!problem.bias) return;
  problem.c = BroadcastTo(*problem.bias, {problem.batch(), problem.m(), problem.n()});
  problem.beta = 1;
  problem.bias.reset();
}

}  // namespace ulpscope::sdk
