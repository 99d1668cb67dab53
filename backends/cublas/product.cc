// A product in cuBLAS's terms.
#include "backends/cublas/product.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "backends/cublas/api.h"
#include "backends/sdk/adapter.h"
#include "harness/words/promotion.h"

namespace ulpscope::cublas {
namespace {

using sdk::GemmLayout;
using sdk::GemmOperands;
using sdk::GemmProblem;
using sdk::StepFailure;
using sdk::StepUnsupported;

ColumnMajor InColumns(const GemmProblem& problem, DType out) {
  const bool transposed = problem.b_layout == GemmLayout::kTransposed;
  const auto at_least_one = [](int64_t extent) { return std::max<int64_t>(extent, 1); };
  return {.rows = problem.n(),
          .columns = problem.m(),
          .inner = problem.k(),
          .batch = problem.batch(),
          .left_op = transposed ? kOpT : kOpN,
          .right_op = kOpN,
          .left_ld = at_least_one(transposed ? problem.k() : problem.n()),
          .right_ld = at_least_one(problem.k()),
          .out_ld = at_least_one(problem.n()),
          .left_type = *DataTypeOf(problem.b.dtype),
          .right_type = *DataTypeOf(problem.a.dtype),
          .out_type = *DataTypeOf(out)};
}

/// cuBLAS adds in place: the destination has the addend's dtype where that is the wider one.
DType DestinationDType(const GemmOperands& operands) {
  if (!operands.c) return operands.result;
  return Promote(operands.result, operands.c->dtype).value_or(operands.result);
}

std::optional<StepFailure> WhatIsWrong(const sdk::Step& step, const GemmProblem& problem) {
  const auto unsupported = [&](const std::string& why) {
    return StepFailure{.outcome = sdk::Outcome::kUnsupported, .text = step.op + ": " + why};
  };
  for (const DType dtype : {problem.a.dtype, problem.b.dtype, problem.result}) {
    if (!DataTypeOf(dtype)) return unsupported("cuBLAS has no dtype " + std::string(Name(dtype)));
  }
  if (SizeOf(problem.result) == 1)
    return unsupported(
        "a float8 result needs a scale, which a program has no place for: ask for another out_dtype");
  // cuBLAS's tables of types have no such row; such a call returns INVALID_VALUE.
  if (problem.a.dtype != problem.b.dtype && (SizeOf(problem.a.dtype) != 1 || SizeOf(problem.b.dtype) != 1))
    return unsupported("cuBLAS multiplies operands of one dtype; these are " +
                       std::string(Name(problem.a.dtype)) + " and " + std::string(Name(problem.b.dtype)));
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (problem.m() > kMost || problem.n() > kMost || problem.k() > kMost || problem.batch() > kMost)
    return unsupported("too large for 32-bit sizes");
  return std::nullopt;
}

}  // namespace

std::optional<tl::expected<PreparedProduct, StepFailure>> Prepare(const sdk::Step& step,
                                                                  sdk::GlueContext& context,
                                                                  const std::string& compute_word,
                                                                  Bias bias) {
  auto taken = sdk::TakeGemmOperands(step, context);
  if (!taken) return std::nullopt;
  GemmOperands operands = ULPSCOPE_TRY(*std::move(taken));
  PreparedProduct product;
  product.asked = operands.result;
  operands.result = DestinationDType(operands);
  // A bias that the library adds itself stays as it is: only one in the destination's dtype does.
  if (operands.c) operands.c = context.Cast(*operands.c, operands.result, step.op);
  auto problem = ULPSCOPE_TRY(sdk::MakeGemmProblem(step, std::move(operands)));
  if (bias == Bias::kSpread) sdk::SpreadBias(problem);
  if (const auto wrong = WhatIsWrong(step, problem)) return tl::unexpected(*wrong);
  product.problem = std::move(problem);
  product.compute = FindComputeType(compute_word, product.problem.a.dtype);
  product.shape = InColumns(product.problem, product.problem.result);
  product.beta = product.problem.c ? product.problem.beta : 0;
  if (product.problem.c) {
    product.out = *product.problem.c;
  } else {
    product.out = TensorData::Zeros(product.problem.result,
                                    {product.problem.batch(), product.problem.m(), product.problem.n()});
    // Elements that the library does not write keep the poison.
    sdk::FillPoison(product.out.bytes, SizeOf(product.out.dtype));
  }
  return product;
}

Scalar MakeScalar(double value, DType dtype) {
  Scalar scalar;
  EncodeElement(RoundTo({value, 0}, *FormatOf(dtype)), dtype, scalar.bytes);
  return scalar;
}

std::string Describe(const PreparedProduct& product) {
  return std::string(Name(product.problem.a.dtype)) + " . " + std::string(Name(product.problem.b.dtype)) +
         " -> " + std::string(Name(product.problem.result)) + ", " + product.compute->word;
}

std::string OperandsAs(const PreparedProduct& product) {
  return product.problem.a.dtype == DType::kFloat32 ? product.compute->operands : "";
}

StepFailure Failure(const std::string& what, const PreparedProduct& product, int status) {
  const bool refused = status == kNotSupported || status == kArchMismatch;
  return {.outcome = status == kAllocFailed ? sdk::Outcome::kOutOfMemory
                     : refused              ? sdk::Outcome::kUnsupported
                                            : sdk::Outcome::kRaised,
          .error_class = refused || status == kAllocFailed ? "" : "cublasStatus_t",
          .text = what + " (" + Describe(product) + "): " + StatusText(status)};
}

}  // namespace ulpscope::cublas
