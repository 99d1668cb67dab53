// Matrix products by a CBLAS, over the SDK's tensors.
//
// A packaged OpenBLAS or BLIS has sgemm and dgemm and no bfloat16 gemm (OpenBLAS declares cblas_sbgemm and
// its library lacks it). So 16-bit and 8-bit operands are widened to float32, which is exact, and multiplied
// by cblas_sgemm; the float32 result is stored to the declared dtype with one rounding (glue). A float32
// buffer therefore receives the unrounded float32 result, and addmm on a float32 C with bfloat16 operands is
// the fused accumulation: one sgemm with beta.
#pragma once

#include <optional>

#include "backends/sdk/glue.h"

namespace ulpscope::cblas {

/// The kernel for sdk::RunWithGlue: the steps of sdk::GemmOps; nothing for other steps.
std::optional<sdk::StepResult> GemmKernel(const sdk::Step& step, sdk::GlueContext& context);

}  // namespace ulpscope::cblas
