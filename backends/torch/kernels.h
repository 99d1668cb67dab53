// The kernels of a device under the ops that launched them, by name, as PyTorch's own profiler (kineto) has them.
#pragma once

#include <functional>
#include <string>

#include "backends/torch/trace.h"

namespace ulpscope::torch_backend {

enum class ProfiledDevice { kCpu, kCuda };

/// Nodes of the stage profile: every op with its time, nested as it ran, and below the op that launched it each kernel with its time
/// on the device. `problem`: why there are none, or no kernels.
RecordedOps KernelsUnderOps(const std::function<void()>& run, ProfiledDevice device, std::string* problem);

}  // namespace ulpscope::torch_backend
