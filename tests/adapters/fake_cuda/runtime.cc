// Stand-in for libcuda.so.1 and libcudart.so.13: a device whose memory is the host's.
#include <map>

#include "tests/adapters/fake_cuda/arithmetic.h"

namespace {

std::map<void*, size_t>& Live() {
  static std::map<void*, size_t> live;
  return live;
}

/// Says at the end what was never freed.
struct Leaks {
  ~Leaks() { fake::Log("{\"leaked\": " + std::to_string(Live().size()) + "}"); }
};

/// A copy has to lie inside memory that cudaMalloc gave.
bool Inside(const void* pointer, size_t bytes) {
  for (const auto& [base, size] : Live()) {
    const auto* begin = static_cast<const char*>(base);
    const auto* at = static_cast<const char*>(pointer);
    if (at >= begin && at + bytes <= begin + size) return true;
  }
  return false;
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return fake::FromEnvironment("FAKE_CUDA_INIT", 0); }
int cuDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, static_cast<size_t>(length), "Stand-in %d", device);
  return 0;
}
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }

int cudaGetDeviceCount(int* count) {
  *count = fake::FromEnvironment("FAKE_CUDA_DEVICES", 1);
  return *count < 0 ? 35 : 0;
}
int cudaSetDevice(int) { return 0; }
int cudaDeviceGetAttribute(int* value, int attribute, int) { return *value = attribute == 75 ? 9 : 0, 0; }
int cudaRuntimeGetVersion(int* version) { return *version = 13010, 0; }
const char* cudaGetErrorString(int error) {
  return error == 35 ? "CUDA driver version is insufficient for CUDA runtime version" : "some error";
}

int cudaMalloc(void** pointer, size_t bytes) {
  static Leaks leaks;
  size_t used = bytes;
  for (const auto& [base, size] : Live()) used += size;
  if (used > static_cast<size_t>(fake::FromEnvironment("FAKE_CUDA_MEMORY", 1 << 28))) return 2;
  *pointer = std::malloc(bytes);
  std::memset(*pointer, 0xcc, bytes);
  Live()[*pointer] = bytes;
  return 0;
}
int cudaFree(void* pointer) {
  if (Live().erase(pointer) == 0) return 1;
  std::free(pointer);
  return 0;
}
int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
  if (!Inside(kind == 1 ? to : from, bytes)) return 1;
  std::memcpy(to, from, bytes);
  return 0;
}
int cudaDeviceSynchronize() { return fake::FromEnvironment("FAKE_CUDA_SYNC", 0); }

}  // extern "C"
