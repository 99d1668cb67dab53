// Matrix products by a CBLAS: one gemm per batch entry, in float64 where an operand is, else in float32.
#include "backends/cblas/gemm.h"

#include <cblas.h>

#include <limits>
#include <utility>

#include "backends/sdk/gemm.h"

namespace ulpscope::cblas {
namespace {

using sdk::GemmOperands;
using sdk::GemmProblem;
using sdk::GlueContext;
using sdk::Step;
using sdk::StepResult;
using sdk::StepUnsupported;

template <class T>
const T* Data(const TensorData& tensor) {
  return reinterpret_cast<const T*>(tensor.bytes.data());
}

/// One row-major product, its leading dimensions as tight as BLAS allows.
struct Sizes {
  int m = 0, n = 0, k = 0;
  CBLAS_TRANSPOSE b_transposed = CblasNoTrans;
  int ldb() const { return b_transposed == CblasNoTrans ? n : k; }
};

void Gemm(const Sizes& s, double alpha, const float* a, const float* b, double beta, float* c) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, s.b_transposed, s.m, s.n, s.k, static_cast<float>(alpha), a, s.k,
              b, s.ldb(), static_cast<float>(beta), c, s.n);
}
void Gemm(const Sizes& s, double alpha, const double* a, const double* b, double beta, double* c) {
  cblas_dgemm(CblasRowMajor, CblasNoTrans, s.b_transposed, s.m, s.n, s.k, alpha, a, s.k, b, s.ldb(), beta, c,
              s.n);
}

template <class T>
TensorData Multiply(const GemmProblem& problem) {
  const int64_t m = problem.m(), n = problem.n(), k = problem.k();
  TensorData result = problem.c ? *problem.c : TensorData::Zeros(problem.a.dtype, {problem.batch(), m, n});
  auto* out = reinterpret_cast<T*>(result.bytes.data());
  const Sizes sizes{.m = static_cast<int>(m),
                    .n = static_cast<int>(n),
                    .k = static_cast<int>(k),
                    .b_transposed = problem.b_layout == sdk::GemmLayout::kRows ? CblasNoTrans : CblasTrans};
  for (int64_t i = 0; i < problem.batch() && m * n > 0; ++i) {
    // A leading dimension of 0 is refused even where nothing is read.
    if (k == 0) {
      for (int64_t j = 0; j < m * n; ++j)
        out[i * m * n + j] *= problem.c ? static_cast<T>(problem.beta) : T{0};
      continue;
    }
    Gemm(sizes, problem.alpha, Data<T>(problem.a) + i * m * k, Data<T>(problem.b) + i * k * n,
         problem.c ? problem.beta : 0.0, out + i * m * n);
  }
  result.shape = problem.shape;
  return result;
}

bool IsWide(const GemmOperands& operands) {
  return operands.result == DType::kFloat64 || operands.a.dtype == DType::kFloat64 ||
         operands.b.dtype == DType::kFloat64 || (operands.c && operands.c->dtype == DType::kFloat64);
}

bool FitsBlas(const TensorData& tensor) { return tensor.size() <= std::numeric_limits<int>::max(); }

}  // namespace

std::optional<StepResult> GemmKernel(const Step& step, GlueContext& context) {
  auto taken = sdk::TakeGemmOperands(step, context);
  if (!taken) return std::nullopt;
  GemmOperands operands = ULPSCOPE_TRY(*std::move(taken));
  if (!FitsBlas(operands.a) || !FitsBlas(operands.b))
    return StepUnsupported(step.op + ": too large for 32-bit BLAS");
  const bool wide = IsWide(operands);
  const DType compute = wide ? DType::kFloat64 : DType::kFloat32;
  operands.a = context.Cast(operands.a, compute, step.op);
  operands.b = context.Cast(operands.b, compute, step.op);
  if (operands.c) operands.c = context.Cast(*operands.c, compute, step.op);
  auto problem = ULPSCOPE_TRY(sdk::MakeGemmProblem(step, std::move(operands)));
  sdk::SpreadBias(problem);
  context.NameKernel(wide ? "cblas_dgemm" : "cblas_sgemm");
  return context.Cast(wide ? Multiply<double>(problem) : Multiply<float>(problem), problem.result, step.op);
}

}  // namespace ulpscope::cblas
