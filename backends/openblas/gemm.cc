// Matrix products by OpenBLAS: shapes as PyTorch has them, then one gemm per batch entry.
#include "backends/openblas/gemm.h"

#include <cblas.h>

#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "backends/sdk/promotion.h"

namespace ulpscope::openblas {
namespace {

using sdk::GlueContext;
using sdk::Step;
using sdk::StepFailure;
using sdk::StepRaised;
using sdk::StepResult;
using sdk::StepUnsupported;

/// A product as BLAS takes it: [batch] of m x k times k x n, added to beta * c.
struct Problem {
  TensorData a,
      b;  ///< in the compute dtype, batch axes broadcast and flattened: [batch, m, k], [batch, k, n]
  std::optional<TensorData> c;  ///< in the compute dtype, [batch, m, n]
  Shape shape;                  ///< of the result
  double alpha = 1, beta = 1;
};

template <class T>
const T* Data(const TensorData& tensor) {
  return reinterpret_cast<const T*>(tensor.bytes.data());
}

void Gemm(int m, int n, int k, double alpha, const float* a, const float* b, double beta, float* c) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, static_cast<float>(alpha), a, k, b, n,
              static_cast<float>(beta), c, n);
}
void Gemm(int m, int n, int k, double alpha, const double* a, const double* b, double beta, double* c) {
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, alpha, a, k, b, n, beta, c, n);
}

template <class T>
TensorData Multiply(const Problem& problem) {
  const int64_t batch = problem.a.shape[0];
  const int64_t m = problem.a.shape[1];
  const int64_t k = problem.a.shape[2];
  const int64_t n = problem.b.shape[2];
  TensorData result = problem.c ? *problem.c : TensorData::Zeros(problem.a.dtype, {batch, m, n});
  auto* out = reinterpret_cast<T*>(result.bytes.data());
  for (int64_t i = 0; i < batch && m * n > 0; ++i) {
    // A leading dimension of 0 is refused even where nothing is read.
    if (k == 0) {
      for (int64_t j = 0; j < m * n; ++j)
        out[i * m * n + j] *= problem.c ? static_cast<T>(problem.beta) : T{0};
      continue;
    }
    Gemm(static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), problem.alpha,
         Data<T>(problem.a) + i * m * k, Data<T>(problem.b) + i * k * n, problem.c ? problem.beta : 0.0,
         out + i * m * n);
  }
  result.shape = problem.shape;
  return result;
}

std::string Shapes(const TensorData& a, const TensorData& b) {
  return Describe(a.dtype, a.shape) + " and " + Describe(b.dtype, b.shape);
}

/// The last two axes of `tensor`, with the batch axes broadcast to `batch` and flattened into one.
TensorData Flattened(const TensorData& tensor, const Shape& batch) {
  Shape shape = batch;
  shape.insert(shape.end(), tensor.shape.end() - 2, tensor.shape.end());
  TensorData flat = sdk::BroadcastTo(tensor, shape);
  flat.shape = {ElementCount(batch), shape[shape.size() - 2], shape[shape.size() - 1]};
  return flat;
}

/// torch.matmul's shapes: a 1-D operand gains an axis that the result loses again; batch axes broadcast.
tl::expected<Problem, StepFailure> MatmulProblem(TensorData a, TensorData b) {
  if (a.shape.empty() || b.shape.empty())
    return StepRaised("RuntimeError", "matmul of a 0-dim tensor: " + Shapes(a, b));
  const bool a_is_vector = a.shape.size() == 1;
  const bool b_is_vector = b.shape.size() == 1;
  if (a_is_vector) a.shape.insert(a.shape.begin(), 1);
  if (b_is_vector) b.shape.push_back(1);
  const std::optional<Shape> batch = sdk::BroadcastShape(Shape(a.shape.begin(), a.shape.end() - 2),
                                                         Shape(b.shape.begin(), b.shape.end() - 2));
  if (!batch || a.shape.back() != b.shape[b.shape.size() - 2]) {
    return StepRaised("RuntimeError", "matrices do not go together: " + Shapes(a, b));
  }
  Problem problem;
  problem.a = Flattened(a, *batch);
  problem.b = Flattened(b, *batch);
  problem.shape = *batch;
  if (!a_is_vector) problem.shape.push_back(a.shape[a.shape.size() - 2]);
  if (!b_is_vector) problem.shape.push_back(b.shape.back());
  return problem;
}

/// Operands in the order of PyTorch's arguments, taken apart.
struct Operands {
  const TensorData* a = nullptr;
  const TensorData* b = nullptr;
  const TensorData* c = nullptr;
};

std::optional<Operands> TakeOperands(const Step& step, const GlueContext& context) {
  std::vector<const TensorData*> tensors;
  for (const sdk::Operand& operand : step.of) {
    tensors.push_back(context.Tensor(operand));
    if (tensors.back() == nullptr) return std::nullopt;
  }
  if (step.op == "addmm" || step.op == "baddbmm") {
    if (tensors.size() != 3) return std::nullopt;
    return Operands{.a = tensors[1], .b = tensors[2], .c = tensors[0]};
  }
  if (step.op == "linear" && tensors.size() == 3)
    return Operands{.a = tensors[0], .b = tensors[1], .c = tensors[2]};
  if (tensors.size() != 2) return std::nullopt;
  return Operands{.a = tensors[0], .b = tensors[1], .c = nullptr};
}

/// The result's dtype where no attribute and no buffer says another: promotion of all operands.
std::optional<DType> DeclaredDType(const Operands& operands) {
  std::optional<DType> dtype = sdk::Promote(operands.a->dtype, operands.b->dtype);
  if (dtype && operands.c != nullptr) dtype = sdk::Promote(*dtype, operands.c->dtype);
  return dtype;
}

tl::expected<DType, StepFailure> ResultDType(const Step& step, const Operands& operands,
                                             const GlueContext& context) {
  if (const std::optional<DType> out = context.OutDType(step)) return *out;
  for (const char* key : {"preferred_element_type", "out_dtype"}) {
    if (!step.Has(key) || step.attrs[key].is_null()) continue;
    const Result<DType> asked = sdk::DTypeAttr(step, key);
    if (!asked) return StepUnsupported(asked.error().message);
    return *asked;
  }
  const std::optional<DType> declared = DeclaredDType(operands);
  if (!declared) return StepUnsupported(step.op + ": no common dtype of the operands");
  return *declared;
}

bool RankIsWrong(const Step& step, const Operands& operands) {
  const size_t rank = step.op == "mm" || step.op == "addmm"      ? 2
                      : step.op == "bmm" || step.op == "baddbmm" ? 3
                                                                 : 0;
  return (rank != 0 && (operands.a->shape.size() != rank || operands.b->shape.size() != rank)) ||
         (rank == 3 && operands.a->shape[0] != operands.b->shape[0]) ||
         (step.op == "linear" && operands.b->shape.size() != 2);
}

StepResult Product(const Step& step, const Operands& operands, GlueContext& context) {
  if (RankIsWrong(step, operands))
    return StepRaised("RuntimeError", step.op + ": wrong shapes " + Shapes(*operands.a, *operands.b));
  for (const TensorData* tensor : {operands.a, operands.b, operands.c}) {
    if (tensor != nullptr && !IsFloating(tensor->dtype))
      return StepUnsupported(step.op + " of " + std::string(Name(tensor->dtype)));
  }
  const tl::expected<DType, StepFailure> result_dtype = ResultDType(step, operands, context);
  if (!result_dtype) return tl::unexpected(result_dtype.error());
  if (!IsFloating(*result_dtype))
    return StepUnsupported(step.op + " into " + std::string(Name(*result_dtype)));
  bool wide = *result_dtype == DType::kFloat64;
  for (const TensorData* tensor : {operands.a, operands.b, operands.c}) {
    wide = wide || (tensor != nullptr && tensor->dtype == DType::kFloat64);
  }
  const DType compute = wide ? DType::kFloat64 : DType::kFloat32;
  TensorData b = context.Cast(*operands.b, compute, step.op);
  if (step.op == "linear") b = sdk::Permuted(b, {1, 0});
  tl::expected<Problem, StepFailure> problem =
      MatmulProblem(context.Cast(*operands.a, compute, step.op), std::move(b));
  if (!problem) return tl::unexpected(problem.error());
  const Result<double> alpha = sdk::FloatAttr(step, "alpha", 1.0);
  const Result<double> beta = sdk::FloatAttr(step, "beta", 1.0);
  if (!alpha || !beta) return StepUnsupported((alpha ? beta : alpha).error().message);
  problem->alpha = *alpha;
  problem->beta = *beta;
  if (operands.c != nullptr) {
    if (sdk::BroadcastShape(operands.c->shape, problem->shape) != problem->shape) {
      return StepRaised("RuntimeError", step.op + ": the addend " +
                                            Describe(operands.c->dtype, operands.c->shape) +
                                            " does not broadcast to the result");
    }
    problem->c = sdk::BroadcastTo(context.Cast(*operands.c, compute, step.op), problem->shape);
  }
  const TensorData result = wide ? Multiply<double>(*problem) : Multiply<float>(*problem);
  return context.Cast(result, *result_dtype, step.op);
}

bool FitsBlas(const TensorData& tensor) { return tensor.size() <= std::numeric_limits<int>::max(); }

}  // namespace

std::optional<StepResult> GemmKernel(const Step& step, GlueContext& context) {
  static const std::set<std::string> ops = {"matmul", "mm", "bmm", "linear", "addmm", "baddbmm"};
  if (!ops.contains(step.op)) return std::nullopt;
  const std::optional<Operands> operands = TakeOperands(step, context);
  if (!operands) return StepUnsupported(step.op + ": wrong number or kind of operands");
  if (!FitsBlas(*operands->a) || !FitsBlas(*operands->b))
    return StepUnsupported(step.op + ": too large for 32-bit BLAS");
  return Product(step, *operands, context);
}

}  // namespace ulpscope::openblas
