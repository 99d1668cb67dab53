// Opening CUDA's libraries.
#include "backends/cublas/load.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace ulpscope::cublas {
namespace {

namespace fs = std::filesystem;

/// One library: opened, or why not.
struct LoadedLibrary {
  void* handle = nullptr;
  std::string name, problem;
};

/// The first of `names` that opens, in `folders` or on the loader's path. Global, as libcublas looks for
/// libcublasLt by name.
LoadedLibrary Open(const std::vector<std::string>& folders, const std::vector<std::string>& names) {
  LoadedLibrary library;
  for (const std::string& name : names) {
    std::vector<std::string> candidates;
    for (const std::string& folder : folders) {
      std::error_code error;
      if (fs::exists(fs::path(folder) / name, error))
        candidates.push_back((fs::path(folder) / name).string());
    }
    candidates.push_back(name);
    for (const std::string& candidate : candidates) {
      library.handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_GLOBAL);
      library.name = name;
      if (library.handle != nullptr) return library;
      const char* why = dlerror();
      if (library.problem.empty()) library.problem = why != nullptr ? why : candidate;
    }
  }
  return library;
}

class Loader {
 public:
  explicit Loader(const std::vector<std::string>& folders) : folders_(folders) {}

  Result<Api> Run() {
    if (const Result<void> driver = OpenDriver(); !driver) return Fail(driver.error());
    if (const Result<void> device = FindDevice(); !device) return Fail(device.error());
    // libcublas needs libcublasLt: opened first, it is found whatever the loader's path.
    const LoadedLibrary lt = Open(folders_, {"libcublasLt.so.13", "libcublasLt.so.12"});
    if (lt.handle == nullptr) return Fail("no cuBLASLt: " + lt.problem);
    const LoadedLibrary blas = Open(folders_, {"libcublas.so.13", "libcublas.so.12"});
    if (blas.handle == nullptr) return Fail("no cuBLAS: " + blas.problem);
#define ULPSCOPE_BIND_LT(name, ...) Bind(lt, #name, &api_.name);
#define ULPSCOPE_BIND_BLAS(name, ...) Bind(blas, #name, &api_.name);
    ULPSCOPE_CUBLASLT(ULPSCOPE_BIND_LT)
    ULPSCOPE_CUBLAS(ULPSCOPE_BIND_BLAS)
#undef ULPSCOPE_BIND_LT
#undef ULPSCOPE_BIND_BLAS
    if (!missing_.empty()) return Fail(missing_);
    return api_;
  }

 private:
  template <class Function>
  void Bind(const LoadedLibrary& library, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library.handle, name));
    if (*function == nullptr && missing_.empty()) missing_ = library.name + " has no function " + name;
  }

  Result<void> OpenDriver() {
    const LoadedLibrary driver = Open(folders_, {"libcuda.so.1"});
    if (driver.handle == nullptr) return Fail("no CUDA device: no driver (" + driver.problem + ")");
#define ULPSCOPE_BIND(name, ...) Bind(driver, #name, &api_.name);
    ULPSCOPE_CUDA_DRIVER(ULPSCOPE_BIND)
#undef ULPSCOPE_BIND
    if (!missing_.empty()) return Fail(missing_);
    const int status = api_.cuInit(0);
    if (status != 0) return Fail("no CUDA device: cuInit gave error " + std::to_string(status));
    return {};
  }

  Result<void> FindDevice() {
    const LoadedLibrary runtime = Open(folders_, {"libcudart.so.13", "libcudart.so.12"});
    if (runtime.handle == nullptr) return Fail("no CUDA runtime: " + runtime.problem);
#define ULPSCOPE_BIND(name, ...) Bind(runtime, #name, &api_.name);
    ULPSCOPE_CUDA_RUNTIME(ULPSCOPE_BIND)
#undef ULPSCOPE_BIND
    if (!missing_.empty()) return Fail(missing_);
    int count = 0;
    const int status = api_.cudaGetDeviceCount(&count);
    if (status != 0) return Fail(std::string("no CUDA device: ") + api_.cudaGetErrorString(status));
    if (count == 0) return Fail("no CUDA device: the driver counts none");
    return {};
  }

  const std::vector<std::string>& folders_;
  Api api_;
  std::string missing_;
};

}  // namespace

Result<Api> Load(const std::vector<std::string>& folders) { return Loader(folders).Run(); }

std::vector<std::string> LibraryFolders(const std::string& python) {
  std::vector<fs::path> candidates;
  // Named by the user, hence before what is found by looking around.
  if (const char* path = std::getenv("LD_LIBRARY_PATH")) {
    std::istringstream entries(path);
    for (std::string entry; std::getline(entries, entry, ':');) candidates.emplace_back(entry);
  }
  if (const char* home = std::getenv("CUDA_HOME")) candidates.push_back(fs::path(home) / "lib64");
  std::error_code error;
  if (!python.empty()) {
    // PREFIX/bin/python ->
    // PREFIX/lib/python3.12/{site,dist}-packages/nvidia/{cu13,cublas,cuda_runtime,...}/lib
    for (const auto& version :
         fs::directory_iterator(fs::path(python).parent_path().parent_path() / "lib", error)) {
      for (const char* packages : {"site-packages", "dist-packages"}) {
        std::error_code ignored;
        for (const auto& part : fs::directory_iterator(version.path() / packages / "nvidia", ignored))
          candidates.push_back(part.path() / "lib");
      }
    }
  }
  candidates.emplace_back("/usr/local/cuda/lib64");
  std::vector<std::string> folders;
  for (const fs::path& candidate : candidates) {
    if (fs::is_directory(candidate, error)) folders.push_back(candidate.string());
  }
  return folders;
}

}  // namespace ulpscope::cublas
