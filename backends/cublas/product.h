// One product as cuBLAS takes it: column-major, so that a row-major C = A B is C^T = B^T A^T, with no copy.
//
// The addend is the destination, with beta, in the destination's dtype: a bfloat16 product is accumulated
// into a float32 C in one call, as the fused weight-gradient accumulation does. A product that cuBLAS answers
// NOT_SUPPORTED to is `unsupported`, in its own words.
#pragma once

#include <string>

#include "backends/cublas/names.h"
#include "backends/sdk/gemm.h"

namespace ulpscope::cublas {

/// The batch in cuBLAS's terms. "left" is the first operand of its call: the program's b.
struct ColumnMajor {
  int64_t rows = 0, columns = 0, inner = 0, batch = 0;
  int left_op = 0, right_op = 0;                  ///< kOpN or kOpT
  int64_t left_ld = 1, right_ld = 1, out_ld = 1;  ///< never 0, which cuBLAS refuses
  int left_type = 0, right_type = 0, out_type = 0;

  int64_t left_stride() const { return rows * inner; }
  int64_t right_stride() const { return columns * inner; }
  int64_t out_stride() const { return rows * columns; }
};

/// The part that is settled before a library is called: the problem, its destination (holding the addend, or
/// the poison), types.
struct PreparedProduct {
  sdk::GemmProblem problem;
  TensorData out;  ///< [batch, m, n]
  DType asked;     ///< of the step's result; `out` is wider where the addend is
  ColumnMajor shape;
  double beta = 0;
  const ComputeType* compute = nullptr;
};

enum class Bias { kSpread, kKept };

/// Takes the step apart; nothing when it is no product. `compute_word` is the knob's.
std::optional<tl::expected<PreparedProduct, sdk::StepFailure>> Prepare(const sdk::Step& step,
                                                                       sdk::GlueContext& context,
                                                                       const std::string& compute_word,
                                                                       Bias bias);

/// alpha and beta in the dtype that the compute type requires.
struct Scalar {
  alignas(8) std::byte bytes[8] = {};
  const void* get() const { return bytes; }
};
Scalar MakeScalar(double value, DType dtype);

/// "bfloat16 . bfloat16 -> float32, 32F"
std::string Describe(const PreparedProduct& product);
/// The format in which the compute type lets the operands be taken, "tf32"; empty: as they are.
std::string OperandsAs(const PreparedProduct& product);

/// Why the library did not do it, as a step's failure.
sdk::StepFailure Failure(const std::string& what, const PreparedProduct& product, int status);

}  // namespace ulpscope::cublas
