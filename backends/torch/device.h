// Where a worker's tensors live: "cpu", or a CUDA device that is found without paying for one that is not
// there.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "harness/base/result.h"

namespace ulpscope::torch_backend {

/// "cpu", "cuda" or "cuda:N". For CUDA the driver is asked first (a fraction of a millisecond where there is
/// none), then PyTorch's CUDA library is loaded, which this program does not link. Errors say what is
/// missing; all begin "no CUDA device".
Result<at::Device> OpenDevice(const std::string& name);

/// Waits until the device has done everything; errors of kernels are raised here.
void Synchronize(at::Device device);

}  // namespace ulpscope::torch_backend
