// Device memory with an owner, and the errors of CUDA's calls as exceptions with their place.
#pragma once

#include <new>
#include <stdexcept>
#include <string>

#include "backends/cublas/api.h"
#include "harness/num/tensor_data.h"

namespace ulpscope::cublas {

/// A call failed that this adapter has no better words for; the harness sees `raised`.
class CudaError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws where `status` of the runtime is an error; memory that cannot be had is std::bad_alloc.
void Check(const Api& api, int status, const char* call);

/// Memory on the device, freed with its owner.
class DeviceBuffer {
 public:
  DeviceBuffer(const Api& api, size_t bytes);
  /// A copy of the tensor's bytes.
  DeviceBuffer(const Api& api, const TensorData& tensor);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void* get() const { return data_; }
  size_t bytes() const { return bytes_; }
  /// Waits for the device, then copies back.
  void CopyTo(TensorData* tensor) const;

 private:
  const Api& api_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace ulpscope::cublas
