// The adapter for a library that speaks CBLAS (sgemm and dgemm); everything else is the SDK's glue.
#include <charconv>
#include <string>

#include "backends/cblas/gemm.h"
#include "backends/cblas/vendor.h"
#include "backends/sdk/adapter.h"
#include "backends/sdk/gemm.h"
#include "backends/sdk/glue.h"
#include "harness/words/knobs.h"

namespace ulpscope::cblas {
namespace {

using sdk::Capabilities;
using sdk::HelloRequest;
using sdk::RunReply;
using sdk::RunRequest;

constexpr int kMostThreads = 1024;

std::optional<int> ThreadCount(const std::string& text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > kMostThreads)
    return std::nullopt;
  return count;
}

class CblasAdapter : public sdk::Adapter {
 public:
  Capabilities Hello(const HelloRequest& request) override {
    Capabilities can;
    can.name = VendorName();
    can.backends = {can.name};
    can.error = VendorSetUp(request.knobs);
    can.versions = VendorVersions();
    can.knobs = KnobsTakenBy(can.name, "cpu");
    can.ops = sdk::GlueOps();
    for (const std::string& op : sdk::GemmOps()) can.ops.push_back(op);
    for (const std::string& name : AllDTypeNames()) can.dtypes.push_back(name);
    can.scopes = {"no_grad", "enable_grad"};
    can.capabilities = {"out", "preferred_element_type"};
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
        const std::optional<int> count = ThreadCount(value);
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
