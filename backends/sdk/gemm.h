// Matrix products as a library takes them: the steps matmul mm bmm linear addmm baddbmm, taken apart.
//
// Every GEMM library wants the same from a program: one batch of row-major matrices, the addend beside it,
// and the dtype that the result is to have. PyTorch's meaning of its shapes and dtypes is written here once;
// an adapter casts what its library cannot take (TakeGemmOperands), flattens (MakeGemmProblem) and calls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/sdk/adapter.h"
#include "backends/sdk/glue.h"

namespace ulpscope::sdk {

/// The steps that TakeGemmOperands knows, for Capabilities::ops.
const std::vector<std::string>& GemmOps();

/// Capabilities that all adapters of GEMM libraries share, under the name of the adapter.
Capabilities GemmCapabilities(const std::string& name);
/// The value of the knob threads; nothing where it is no count.
std::optional<int> ThreadCount(const std::string& text);

/// The operands of one product in the roles that they play, each in its own dtype and shape.
struct GemmOperands {
  TensorData a, b;              ///< linear: x and weight, the weight not yet transposed
  std::optional<TensorData> c;  ///< addmm, baddbmm: the addend; linear: the bias
  DType result =
      DType::kFloat32;  ///< of out=, else as asked (out_dtype, preferred_element_type), else promoted
};

/// Nothing when the step is no product; a failure when PyTorch refuses these shapes or nothing here can serve
/// it.
std::optional<tl::expected<GemmOperands, StepFailure>> TakeGemmOperands(const Step& step,
                                                                        const GlueContext& context);

enum class GemmLayout { kRows, kTransposed };

/// shape = alpha * a b + beta * c + bias, batch by batch.
struct GemmProblem {
  TensorData a;  ///< [batch, m, k]
  TensorData b;  ///< [batch, k, n]; kTransposed: [batch, n, k]
  GemmLayout b_layout = GemmLayout::kRows;
  std::optional<TensorData> c;     ///< [batch, m, n]
  std::optional<TensorData> bias;  ///< [n], of linear
  DType result = DType::kFloat32;
  Shape shape;  ///< of the result, as PyTorch has it
  double alpha = 1, beta = 1;

  int64_t batch() const { return a.shape[0]; }
  int64_t m() const { return a.shape[1]; }
  int64_t k() const { return a.shape[2]; }
  int64_t n() const { return b.shape[b_layout == GemmLayout::kRows ? 2 : 1]; }
};

/// Flattens batch axes into one (broadcast), gives vectors their second axis, spreads the addend.
tl::expected<GemmProblem, StepFailure> MakeGemmProblem(const Step& step, GemmOperands operands);

/// Makes a bias an addend (beta is 1 then), for libraries without one.
void SpreadBias(GemmProblem& problem);

}  // namespace ulpscope::sdk
