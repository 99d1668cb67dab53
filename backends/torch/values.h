// Tensors between the SDK and LibTorch: dtypes, bytes, strides, poison.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "backends/sdk/adapter.h"

namespace ulpscope::torch_backend {

at::ScalarType ToTorch(DType dtype);
/// Nothing for a dtype that has no name here (complex, quantised, ...).
std::optional<DType> FromTorch(at::ScalarType type);
/// The long name: "bfloat16"; PyTorch's own where we have none.
std::string DTypeName(at::ScalarType type);

/// A tensor on `device` with the requested strides (in elements; empty: contiguous) and its own memory.
at::Tensor MakeTensor(const TensorData& data, const std::vector<int64_t>& strides, at::Device device);

/// The values in logical row-major order. Error: a dtype that has no name here, or no dense tensor.
Result<TensorData> ReadTensor(const at::Tensor& tensor);

/// Fills the tensor's memory with the poison pattern.
void PoisonTensor(const at::Tensor& tensor);

/// True when dtype, shape and every byte agree.
bool SameBits(const at::Tensor& a, const at::Tensor& b);

}  // namespace ulpscope::torch_backend
