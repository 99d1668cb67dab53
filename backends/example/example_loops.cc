// A complete ulpscope backend in C++, three loops, on one screen.
#include "backends/sdk/adapter.h"
#include "backends/sdk/gemm.h"

using namespace ulpscope;

namespace {

/// The product that this backend is about; every other step is left to the SDK, which rounds correctly.
std::optional<sdk::StepResult> Multiply(const sdk::Step& step, sdk::GlueContext& context) {
  auto operands = sdk::TakeGemmOperands(step, context);
  if (!operands || step.op != "matmul") return std::nullopt;
  if (!*operands) return tl::unexpected(operands->error());
  const auto problem = sdk::MakeGemmProblem(step, std::move(**operands));
  if (!problem) return tl::unexpected(problem.error());
  if (problem->batch() != 1)
    return sdk::StepResult(sdk::StepUnsupported("loops multiplies two matrices, no batches"));
  TensorData product = TensorData::Zeros(DType::kFloat32, problem->shape);
  for (int64_t i = 0; i < problem->m(); ++i) {
    for (int64_t j = 0; j < problem->n(); ++j) {
      float sum = 0;
      for (int64_t k = 0; k < problem->k(); ++k)
        sum += static_cast<float>(problem->a.At(i * problem->k() + k) * problem->b.At(k * problem->n() + j));
      product.Set(i * problem->n() + j, sum);
    }
  }
  return context.Cast(product, problem->result, "matmul");
}

class Loops : public sdk::Adapter {
  sdk::Capabilities Hello(const sdk::HelloRequest&) override {
    sdk::Capabilities can{.name = "loops", .backends = {"loops"}, .versions = {{"loops", "1.0"}}};
    can.knobs = {{"threads", {"1"}}};
    can.ops = sdk::GlueOps();
    can.ops.push_back("matmul");
    can.dtypes = {"float64", "float32", "float16", "bfloat16"};
    can.capabilities = {"out"};
    return can;
  }

  sdk::RunReply Run(const sdk::RunRequest& request) override {
    sdk::RunReply reply = sdk::RunWithGlue(request, Multiply);
    reply.knobs = {{"threads", "1"}};
    return reply;
  }
};

}  // namespace

int main() {
  Loops loops;
  return sdk::ServeAdapter(loops);
}
