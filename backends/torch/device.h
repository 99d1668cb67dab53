// Device of a worker's tensors: "cpu", or a CUDA device, which is looked up at no cost if there is none.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "harness/base/result.h"

namespace ulpscope::torch_backend {

/// "cpu", "cuda" or "cuda:N". For CUDA the driver is queried first (a fraction of a millisecond if there is
/// none), then PyTorch's CUDA library is loaded, which this program does not link. Errors name what is
/// missing; all begin "no CUDA device".
Result<at::Device> OpenDevice(const std::string& name);

/// Waits until the device has done everything; errors of kernels are raised here.
void Synchronize(at::Device device);

}  // namespace ulpscope::torch_backend
