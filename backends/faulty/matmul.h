// A plain matrix product, so that the faulty adapter computes something when it behaves.
#pragma once

#include <optional>

#include "backends/sdk/glue.h"

namespace ulpscope::faulty {

/// matmul in float32, summed in order of k, rounded once to the dtype of the operands (or of out=). Batch
/// axes must be equal. Nothing for other steps: glue takes them.
std::optional<sdk::StepResult> MatmulKernel(const sdk::Step& step, sdk::GlueContext& context);

}  // namespace ulpscope::faulty
