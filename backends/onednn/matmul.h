// Matrix products by oneDNN, over the SDK's tensors, in the dtypes that the program has: nothing is widened.
//
// The addend of addmm and baddbmm goes in as the destination with a `sum` post-op, so that bfloat16 operands
// are accumulated into a float32 C in one primitive; the bias of linear is the primitive's own. A product
// that oneDNN has no implementation for on this processor is unsupported, in oneDNN's words.
#pragma once

#include <optional>

#include "backends/sdk/glue.h"

namespace ulpscope::onednn {

/// The kernel for sdk::RunWithGlue: the steps of sdk::GemmOps; nothing for other steps.
std::optional<sdk::StepResult> MatmulKernel(const sdk::Step& step, sdk::GlueContext& context);

}  // namespace ulpscope::onednn
