// ulpscope-cublas: the adapter for cuBLAS (backend cublas) and cuBLASLt (backend cublaslt); everything else is glue.
//
//     ulpscope-cublas [--library-path DIR]... [--beside PYTHON]
//
// --library-path  where CUDA's libraries are, before everywhere else
// --beside        a Python interpreter whose nvidia-* packages hold them
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "backends/cublas/device.h"
#include "backends/cublas/library.h"
#include "backends/cublas/load.h"
#include "backends/sdk/adapter.h"
#include "backends/sdk/gemm.h"
#include "backends/sdk/glue.h"

namespace ulpscope::cublas {
namespace {

using sdk::Capabilities;
using sdk::HelloRequest;
using sdk::RunReply;
using sdk::RunRequest;

class CublasAdapter : public sdk::Adapter {
 public:
  explicit CublasAdapter(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  Capabilities Hello(const HelloRequest& request) override {
    Capabilities can = sdk::GemmCapabilities("cublas");
    can.backends = {"cublas", "cublaslt"};
    can.devices = {"cuda"};
    can.knobs = request.backend == "cublaslt" ? LtKnobs() : GemmExKnobs();
    can.knobs["threads"] = {"1"};
    if (request.backend != "cublas" && request.backend != "cublaslt") {
      can.error = "this adapter serves cublas and cublaslt, not '" + request.backend + "'";
    } else {
      try {
        can.error = Open(request, &can.versions);
      } catch (const CudaError& error) {
        can.error = error.what();
      }
    }
    return can;
  }

  RunReply Run(const RunRequest& request) override {
    const std::string problem = SetKnobs(request.knobs);
    if (!problem.empty()) return RunReply::Unsupported(problem);
    RunReply reply = sdk::RunWithGlue(request, [this](const sdk::Step& step, sdk::GlueContext& context) {
      return library_->Run(step, context);
    });
    reply.knobs = library_->ReadBack();
    reply.knobs["threads"] = "1";  // of the host's, which computes nothing here but glue
    return reply;
  }

 private:
  std::string SetKnobs(std::map<std::string, std::string> knobs) {
    if (library_ == nullptr) return "no library is open";
    if (const auto threads = knobs.find("threads"); threads != knobs.end()) {
      if (threads->second != "1")
        return "knob threads=" + threads->second + ": the host computes nothing here";
      knobs.erase(threads);
    }
    return library_->SetKnobs(knobs);
  }

  std::string Open(const HelloRequest& request, std::map<std::string, std::string>* versions) {
    auto loaded = Load(folders_);
    if (!loaded) return loaded.error().message;
    api_ = *loaded;
    if (const std::string problem = UseDevice(request.device); !problem.empty()) return problem;
    library_ = request.backend == "cublaslt" ? OpenLt(api_) : OpenGemmEx(api_);
    *versions = {{request.backend, library_->Version()}, {"device", DeviceName()}};
    int number = 0;
    if (api_.cudaRuntimeGetVersion(&number) == 0) (*versions)["cuda"] = VersionText(number);
    if (api_.cuDriverGetVersion(&number) == 0) (*versions)["driver"] = VersionText(number);
    return SetKnobs(request.knobs);
  }

  /// "cuda" is the first device, "cuda:1" the second.
  std::string UseDevice(const std::string& device) {
    const bool indexed = device.starts_with("cuda:") && device.size() > 5 && device.size() < 9 &&
                         device.find_first_not_of("0123456789", 5) == std::string::npos;
    if (device != "cuda" && !indexed) return "cuBLAS runs on cuda, not on '" + device + "'";
    device_ = indexed ? std::stoi(device.substr(5)) : 0;
    int count = 0;
    Check(api_, api_.cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    if (device_ >= count) return "no CUDA device " + std::to_string(device_) + " of " + std::to_string(count);
    Check(api_, api_.cudaSetDevice(device_), "cudaSetDevice");
    return {};
  }

  /// "NVIDIA H100 sm_90"
  std::string DeviceName() const {
    char name[256] = {};
    int major = 0, minor = 0;
    api_.cuDeviceGetName(name, static_cast<int>(sizeof name) - 1, device_);
    api_.cudaDeviceGetAttribute(&major, kAttributeMajor, device_);
    api_.cudaDeviceGetAttribute(&minor, kAttributeMinor, device_);
    return std::string(name) + " sm_" + std::to_string(major) + std::to_string(minor);
  }

  static std::string VersionText(int number) {
    return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
  }

  std::vector<std::string> folders_;
  Api api_;
  int device_ = 0;
  std::unique_ptr<Library> library_;
};

}  // namespace
}  // namespace ulpscope::cublas

int main(int argc, char** argv) {
  std::vector<std::string> folders;
  std::string python;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (has_value && std::strcmp(argv[i], "--library-path") == 0) {
      folders.emplace_back(argv[++i]);
    } else if (has_value && std::strcmp(argv[i], "--beside") == 0) {
      python = argv[++i];
    } else {
      std::fprintf(stderr, "ulpscope-cublas: unknown argument %s\n", argv[i]);
      return 4;
    }
  }
  for (std::string& folder : ulpscope::cublas::LibraryFolders(python)) folders.push_back(std::move(folder));
  ulpscope::cublas::CublasAdapter adapter(std::move(folders));
  return ulpscope::sdk::ServeAdapter(adapter);
}
