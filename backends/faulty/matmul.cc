// Matrix product by three loops.
#include "backends/faulty/matmul.h"

namespace ulpscope::faulty {
namespace {

/// rows x inner times inner x columns at the given element offsets.
void MultiplyOne(const TensorData& a, const TensorData& b, TensorData& product, const Shape& sizes,
                 int64_t batch) {
  const int64_t rows = sizes[0], inner = sizes[1], columns = sizes[2];
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        const auto left = static_cast<float>(a.At((batch * rows + i) * inner + k));
        const auto right = static_cast<float>(b.At((batch * inner + k) * columns + j));
        sum += left * right;
      }
      product.Set((batch * rows + i) * columns + j, sum);
    }
  }
}

}  // namespace

std::optional<sdk::StepResult> MatmulKernel(const sdk::Step& step, sdk::GlueContext& context) {
  if (step.op != "matmul" || step.of.size() != 2) return std::nullopt;
  const TensorData* a = context.Tensor(step.of[0]);
  const TensorData* b = context.Tensor(step.of[1]);
  if (a == nullptr || b == nullptr) return sdk::StepResult(sdk::StepUnsupported("matmul of a scalar"));
  const size_t rank = a->shape.size();
  if (rank < 2 || b->shape.size() != rank || a->shape[rank - 1] != b->shape[rank - 2] ||
      a->dtype != b->dtype) {
    return sdk::StepResult(sdk::StepUnsupported("matmul of " + Describe(a->dtype, a->shape) + " and " +
                                                Describe(b->dtype, b->shape)));
  }
  Shape shape = a->shape;
  shape[rank - 1] = b->shape[rank - 1];
  int64_t batches = 1;
  for (size_t axis = 0; axis + 2 < rank; ++axis) {
    if (a->shape[axis] != b->shape[axis])
      return sdk::StepResult(sdk::StepUnsupported("matmul with broadcast batch axes"));
    batches *= a->shape[axis];
  }
  TensorData product = TensorData::Zeros(DType::kFloat32, shape);
  const Shape sizes{a->shape[rank - 2], a->shape[rank - 1], b->shape[rank - 1]};
  for (int64_t batch = 0; batch < batches; ++batch) MultiplyOne(*a, *b, product, sizes, batch);
  return sdk::StepResult(context.Cast(product, context.OutDType(step).value_or(a->dtype), "matmul"));
}

}  // namespace ulpscope::faulty
