// ulpscope-onednn: the adapter for oneDNN's matmul; everything else is the SDK's glue.
#include <dlfcn.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "backends/onednn/isa.h"
#include "backends/onednn/matmul.h"
#include "backends/sdk/adapter.h"
#include "backends/sdk/gemm.h"
#include "backends/sdk/glue.h"

namespace ulpscope::onednn {
namespace {

using sdk::Capabilities;
using sdk::HelloRequest;
using sdk::RunReply;
using sdk::RunRequest;

/// The OpenMP runtime that oneDNN brought along, whichever it is; null where it was built without.
struct OpenMp {
  void (*set_num_threads)(int) = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  int (*get_max_threads)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));

  int Threads() const { return get_max_threads != nullptr ? get_max_threads() : 1; }
  void Set(int count) const {
    if (set_num_threads != nullptr) set_num_threads(count);
  }
};

class OneDnnAdapter : public sdk::Adapter {
 public:
  Capabilities Hello(const HelloRequest& request) override {
    Capabilities can = sdk::GemmCapabilities("onednn");
    if (request.backend != "onednn") can.error = "this adapter serves onednn, not '" + request.backend + "'";
    if (request.device != "cpu")
      can.error = "this adapter drives oneDNN's cpu engine, not '" + request.device + "'";
    open_mp_.Set(1);
    // The knobs come before the version: any query of oneDNN settles the instruction set.
    if (can.error.empty()) can.error = Apply(request.knobs);
    const dnnl_version_t* version = dnnl_version();
    can.versions = {{"onednn", std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
                                   std::to_string(version->patch)},
                    {"isa", EffectiveIsa()}};
    return can;
  }

  RunReply Run(const RunRequest& request) override {
    const std::string problem = Apply(request.knobs);
    if (!problem.empty()) return RunReply::Unsupported(problem);
    RunReply reply = sdk::RunWithGlue(request, MatmulKernel);
    reply.knobs = {{"threads", std::to_string(open_mp_.Threads())}, {"onednn_max_cpu_isa", EffectiveIsa()}};
    return reply;
  }

  int64_t Threads() override { return open_mp_.Threads(); }

 private:
  std::string SetThreads(const std::string& text) const {
    const std::optional<int> count = sdk::ThreadCount(text);
    if (!count) return "knob threads=" + text + " is no count";
    open_mp_.Set(*count);
    if (open_mp_.Threads() == *count) return {};
    return "knob threads=" + text + ": oneDNN keeps to " + std::to_string(open_mp_.Threads());
  }

  /// Sets what can be set now, checks what had to be set before oneDNN's first use. "" or what is wrong.
  std::string Apply(const std::map<std::string, std::string>& knobs) const {
    for (const auto& [knob, value] : knobs) {
      std::string problem = "unknown knob '" + knob + "'";
      if (knob == "threads") problem = SetThreads(value);
      if (knob == "onednn_max_cpu_isa") problem = CapIsa(value);
      if (!problem.empty()) return problem;
    }
    return {};
  }

  OpenMp open_mp_;
};

}  // namespace
}  // namespace ulpscope::onednn

int main() {
  ulpscope::onednn::OneDnnAdapter adapter;
  return ulpscope::sdk::ServeAdapter(adapter);
}
