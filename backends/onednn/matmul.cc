// Matrix products by oneDNN: one matmul primitive per step.
#include "backends/onednn/matmul.h"

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>

#include "backends/sdk/gemm.h"
#include "harness/words/promotion.h"

namespace ulpscope::onednn {
namespace {

using dnnl::matmul;
using dnnl::memory;
using sdk::GemmLayout;
using sdk::GemmOperands;
using sdk::GemmProblem;
using sdk::GlueContext;
using sdk::Step;
using sdk::StepResult;
using sdk::StepUnsupported;

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

/// undef where oneDNN has no such dtype.
memory::data_type TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return memory::data_type::f32;
    case DType::kBfloat16:
      return memory::data_type::bf16;
    case DType::kFloat16:
      return memory::data_type::f16;
    default:
      return memory::data_type::undef;
  }
}

memory::desc Rows(const TensorData& tensor) {
  return {tensor.shape, TypeOf(tensor.dtype), memory::format_tag::abc};
}

/// The weights as oneDNN sees them: [batch, k, n], however they lie.
memory::desc Weights(const GemmProblem& problem) {
  const bool rows = problem.b_layout == GemmLayout::kRows;
  return {{problem.batch(), problem.k(), problem.n()},
          TypeOf(problem.b.dtype),
          rows ? memory::format_tag::abc : memory::format_tag::acb};
}

dnnl::primitive_attr Attributes(const GemmProblem& problem) {
  dnnl::primitive_attr attributes;
#if DNNL_VERSION_MAJOR < 3
  if (problem.alpha != 1) attributes.set_output_scales(0, {static_cast<float>(problem.alpha)});
#endif
  if (problem.c) {
    dnnl::post_ops after;
    after.append_sum(static_cast<float>(problem.beta));
    attributes.set_post_ops(after);
  }
  return attributes;
}

matmul::primitive_desc Describe(const GemmProblem& problem, const memory::desc& destination) {
  const memory::desc bias =
      problem.bias ? memory::desc({1, 1, problem.n()}, TypeOf(problem.bias->dtype), memory::format_tag::abc)
                   : memory::desc();
#if DNNL_VERSION_MAJOR >= 3
  return {Engine(), Rows(problem.a), Weights(problem), bias, destination, Attributes(problem)};
#else
  return {matmul::desc(Rows(problem.a), Weights(problem), bias, destination), Attributes(problem), Engine()};
#endif
}

memory Wrap(const memory::desc& description, const TensorData& tensor) {
  // oneDNN reads operands through a pointer to mutable memory; it writes to the destination alone.
  return {description, Engine(), const_cast<std::byte*>(tensor.bytes.data())};
}

/// The destination's dtype: the result's, or the addend's where that is wider, for oneDNN adds in place.
DType DestinationDType(const GemmOperands& operands, const Step& step) {
  if (!operands.c || step.op == "linear") return operands.result;
  return Promote(operands.result, operands.c->dtype).value_or(operands.result);
}

TensorData Multiply(const GemmProblem& problem, GlueContext& context, const std::string& op) {
  TensorData out =
      problem.c ? *problem.c : TensorData::Zeros(problem.result, {problem.batch(), problem.m(), problem.n()});
  const memory::desc destination = Rows(out);
  const matmul::primitive_desc description = Describe(problem, destination);
  std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, Wrap(Rows(problem.a), problem.a)},
      {DNNL_ARG_WEIGHTS, Wrap(Weights(problem), problem.b)},
      {DNNL_ARG_DST, memory(destination, Engine(), out.bytes.data())}};
  if (problem.bias) {
    arguments.emplace(DNNL_ARG_BIAS,
                      memory({{1, 1, problem.n()}, TypeOf(problem.bias->dtype), memory::format_tag::abc},
                             Engine(), const_cast<std::byte*>(problem.bias->bytes.data())));
  }
  dnnl::stream stream(Engine());
  matmul(description).execute(stream, arguments);
  stream.wait();
  context.NameKernel(std::string("oneDNN matmul ") + description.impl_info_str());
  context.Note(op + ": oneDNN implementation " + description.impl_info_str());
  out.shape = problem.shape;
  return out;
}

std::string Operands(const GemmProblem& problem) {
  return std::string(Name(problem.a.dtype)) + " . " + std::string(Name(problem.b.dtype)) + " -> " +
         std::string(Name(problem.result));
}

}  // namespace

std::optional<StepResult> MatmulKernel(const Step& step, GlueContext& context) {
  auto taken = sdk::TakeGemmOperands(step, context);
  if (!taken) return std::nullopt;
  GemmOperands operands = ULPSCOPE_TRY(*std::move(taken));
  const DType asked = operands.result;
  operands.result = DestinationDType(operands, step);
  if (operands.c && step.op != "linear") operands.c = context.Cast(*operands.c, operands.result, step.op);
  auto problem = ULPSCOPE_TRY(sdk::MakeGemmProblem(step, std::move(operands)));
  for (const DType dtype : {problem.a.dtype, problem.b.dtype, problem.result}) {
    if (TypeOf(dtype) == memory::data_type::undef)
      return StepUnsupported(step.op + ": oneDNN has no dtype " + std::string(Name(dtype)));
  }
  if (problem.batch() * problem.m() * problem.n() * problem.k() == 0)
    return StepUnsupported(step.op + ": oneDNN gives an empty product no meaning");
  if (step.op == "linear" && problem.c)
    return StepUnsupported("linear: a bias that is no vector of its columns");
#if DNNL_VERSION_MAJOR >= 3
  if (problem.alpha != 1) return StepUnsupported(step.op + ": alpha is not in this adapter for oneDNN 3");
#endif
  try {
    return context.Cast(Multiply(problem, context, step.op), asked, step.op);
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
    return StepUnsupported(step.op + " " + Operands(problem) + ": oneDNN: " + error.what());
  }
}

}  // namespace ulpscope::onednn
