// Device memory.
#include "backends/cublas/device.h"

namespace ulpscope::cublas {

void Check(const Api& api, int status, const char* call) {
  if (status == 0) return;
  if (status == kErrorMemoryAllocation) throw std::bad_alloc();
  throw CudaError(std::string(call) + ": " + api.cudaGetErrorString(status) + " (" + std::to_string(status) +
                  ")");
}

DeviceBuffer::DeviceBuffer(const Api& api, size_t bytes) : api_(api), bytes_(bytes) {
  if (bytes_ > 0) Check(api_, api_.cudaMalloc(&data_, bytes_), "cudaMalloc");
}

DeviceBuffer::DeviceBuffer(const Api& api, const TensorData& tensor)
    : DeviceBuffer(api, tensor.bytes.size()) {
  if (bytes_ > 0)
    Check(api_, api_.cudaMemcpy(data_, tensor.bytes.data(), bytes_, kHostToDevice), "cudaMemcpy");
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) api_.cudaFree(data_);
}

void DeviceBuffer::CopyTo(TensorData* tensor) const {
  Check(api_, api_.cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  if (bytes_ > 0)
    Check(api_, api_.cudaMemcpy(tensor->bytes.data(), data_, bytes_, kDeviceToHost), "cudaMemcpy");
}

}  // namespace ulpscope::cublas
