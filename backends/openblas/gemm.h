// Matrix products by OpenBLAS, over the SDK's tensors.
//
// A packaged OpenBLAS has sgemm and dgemm and no bfloat16 gemm (cblas_sbgemm is declared and absent from the
// library). So 16-bit and 8-bit operands are widened to float32, which is exact, and multiplied by
// cblas_sgemm; the float32 result is stored to the declared dtype with one rounding (glue). A float32 buffer
// therefore receives the unrounded float32 result, and addmm on a float32 C with bfloat16 operands is the
// fused accumulation: one sgemm with beta.
#pragma once

#include <optional>

#include "backends/sdk/glue.h"

namespace ulpscope::openblas {

/// The kernel for sdk::RunWithGlue: matmul mm bmm linear addmm baddbmm; nothing for other steps.
std::optional<sdk::StepResult> GemmKernel(const sdk::Step& step, sdk::GlueContext& context);

}  // namespace ulpscope::openblas
