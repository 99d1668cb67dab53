// The adapter for a library that speaks CBLAS (sgemm and dgemm); everything else is the SDK's glue.
#include <string>

#include "backends/cblas/gemm.h"
#include "backends/cblas/vendor.h"
#include "backends/sdk/adapter.h"
#include "backends/sdk/gemm.h"
#include "backends/sdk/glue.h"

namespace ulpscope::cblas {
namespace {

using sdk::Capabilities;
using sdk::HelloRequest;
using sdk::RunReply;
using sdk::RunRequest;

class CblasAdapter : public sdk::Adapter {
 public:
  Capabilities Hello(const HelloRequest& request) override {
    Capabilities can = sdk::GemmCapabilities(VendorName());
    can.error = VendorSetUp(request.knobs);
    can.versions = VendorVersions();
    if (request.backend != can.name)
      can.error = "this adapter serves " + can.name + ", not '" + request.backend + "'";
    if (request.device != "cpu") can.error = can.name + " runs on the cpu, not on '" + request.device + "'";
    VendorSetThreads(1);
    if (can.error.empty()) can.error = Apply(request.knobs);
    return can;
  }

  RunReply Run(const RunRequest& request) override {
    const std::string problem = Apply(request.knobs);
    if (!problem.empty()) return RunReply::Unsupported(problem);
    RunReply reply = sdk::RunWithGlue(request, GemmKernel);
    reply.knobs["threads"] = std::to_string(VendorThreads());
    reply.knobs[VendorKnob()] = VendorReadBack();
    return reply;
  }

  int64_t Threads() override { return VendorThreads(); }

 private:
  /// Sets what can be set now, checks what had to be set before. "" or what is wrong.
  static std::string Apply(const std::map<std::string, std::string>& knobs) {
    for (const auto& [knob, value] : knobs) {
      if (knob == "threads") {
        const std::optional<int> count = sdk::ThreadCount(value);
        if (!count) return "knob threads=" + value + " is no count";
        VendorSetThreads(*count);
        if (VendorThreads() != *count) {
          return "knob threads=" + value + ": " + VendorName() + " keeps to " +
                 std::to_string(VendorThreads());
        }
      } else if (knob == VendorKnob()) {
        const std::string problem = VendorCheck(value);
        if (!problem.empty()) return problem;
      } else {
        return "unknown knob '" + knob + "'";
      }
    }
    return {};
  }
};

}  // namespace
}  // namespace ulpscope::cblas

int main() {
  ulpscope::cblas::VendorStart();
  ulpscope::cblas::CblasAdapter adapter;
  return ulpscope::sdk::ServeAdapter(adapter);
}
