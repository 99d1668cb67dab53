// Tensors between the SDK and LibTorch.
#include "backends/torch/values.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace ulpscope::torch_backend {
namespace {

constexpr auto kScalarTypes = static_cast<size_t>(at::ScalarType::Undefined);

/// Ours by PyTorch's: both go by one long name.
const std::array<std::optional<DType>, kScalarTypes>& DTypes() {
  static const auto dtypes = [] {
    std::array<std::optional<DType>, kScalarTypes> all;
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = ParseDType(c10::getDtypeNames(static_cast<at::ScalarType>(i)).first);
    return all;
  }();
  return dtypes;
}

/// Dense, on the CPU, contiguous, and cut off from autograd: its memory can be read.
at::Tensor Readable(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  // The gradient of a function that is constant in pieces may be zeros without memory (at::_efficientzerotensor).
  if (tensor._is_zerotensor()) return at::zeros(tensor.sizes(), tensor.options().device(at::kCPU));
  return tensor.detach().cpu().contiguous();
}

}  // namespace

at::ScalarType ToTorch(DType dtype) {
  const auto found = std::ranges::find(DTypes(), dtype);
  TORCH_CHECK(found != DTypes().end(), "this PyTorch has no dtype ", std::string(Name(dtype)));
  return static_cast<at::ScalarType>(found - DTypes().begin());
}

std::optional<DType> FromTorch(at::ScalarType type) {
  const auto index = static_cast<size_t>(type);
  return index < kScalarTypes ? DTypes()[index] : std::nullopt;
}

std::string DTypeName(at::ScalarType type) {
  const std::optional<DType> dtype = FromTorch(type);
  return dtype ? std::string(Name(*dtype)) : std::string(at::toString(type));
}

at::Tensor MakeTensor(const TensorData& data, const std::vector<int64_t>& strides, at::Device device) {
  const at::Tensor source = at::empty(data.shape, at::TensorOptions().dtype(ToTorch(data.dtype)));
  if (!data.bytes.empty()) std::memcpy(source.data_ptr(), data.bytes.data(), data.bytes.size());
  const at::TensorOptions options = source.options().device(device);
  const at::Tensor tensor =
      strides.empty() ? at::empty(data.shape, options) : at::empty_strided(data.shape, strides, options);
  tensor.copy_(source);
  return tensor;
}

Result<TensorData> ReadTensor(const at::Tensor& tensor) {
  const std::optional<DType> dtype = FromTorch(tensor.scalar_type());
  if (!dtype)
    return Fail(std::string("dtype ") + at::toString(tensor.scalar_type()) + " has no name in the protocol");
  if (tensor.layout() != at::kStrided) return Fail("a tensor that is not dense");
  const at::Tensor readable = Readable(tensor);
  TensorData data{
      .dtype = *dtype, .shape = readable.sizes().vec(), .bytes = std::vector<std::byte>(readable.nbytes())};
  if (!data.bytes.empty()) std::memcpy(data.bytes.data(), readable.const_data_ptr(), data.bytes.size());
  return data;
}

void PoisonTensor(const at::Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.nbytes());
  sdk::FillPoison(bytes, tensor.element_size());
  const at::NoGradGuard no_grad;
  const at::Tensor source = at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
  if (!bytes.empty()) std::memcpy(source.data_ptr(), bytes.data(), bytes.size());
  tensor.copy_(source);
}

bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::Tensor left = Readable(a);
  const at::Tensor right = Readable(b);
  return left.nbytes() == 0 || std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

}  // namespace ulpscope::torch_backend
