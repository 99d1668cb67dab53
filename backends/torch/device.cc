// Opening a device.
#include "backends/torch/device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include "backends/torch/library.h"

namespace ulpscope::torch_backend {
namespace {

/// Devices that the driver sees. Error: there is no driver, or it refuses.
Result<int> DriverDevices() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (driver == nullptr) return Fail("no CUDA device: there is no NVIDIA driver (libcuda.so.1)");
  // The two functions of the driver's interface that a count takes; a CUresult is an int, 0 is success.
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count_devices = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  if (init == nullptr || count_devices == nullptr)
    return Fail("no CUDA device: libcuda.so.1 is not the driver's");
  int count = 0;
  int error = init(0);
  if (error == 0) error = count_devices(&count);
  if (error != 0) return Fail("no CUDA device: the driver answers error " + std::to_string(error));
  if (count == 0) return Fail("no CUDA device: the driver sees none");
  return count;
}

}  // namespace

Result<at::Device> OpenDevice(const std::string& name) {
  if (name == "cpu") return at::Device(at::kCPU);
  if (name != "cuda" && !name.starts_with("cuda:"))
    return Fail("device '" + name + "': LibTorch runs on cpu and cuda here");
  const auto count = ULPSCOPE_TRY(DriverDevices());
  if (dlopen((LibraryFolder() + "/libtorch_cuda.so").c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
    return Fail(
        "no CUDA device: this PyTorch is built without CUDA (libtorch_cuda.so is not in its wheel, or does "
        "not load)");
  try {
    const at::Device device(name);
    if (!at::hasCUDA()) return Fail("no CUDA device: PyTorch sees none");
    if (device.has_index() && device.index() >= count)
      return Fail("no CUDA device " + name + ": there are " + std::to_string(count));
    at::globalContext().lazyInitDevice(at::kCUDA);
    return device.has_index() ? device : at::Device(at::kCUDA, 0);
  } catch (const c10::Error& error) {
    return Fail(std::string("no CUDA device: ") + error.what_without_backtrace());
  }
}

void Synchronize(at::Device device) {
  if (device.is_cuda()) at::detail::getCUDAHooks().deviceSynchronize(device.index());
}

}  // namespace ulpscope::torch_backend
