// ulpscope-openblas: the adapter for OpenBLAS (sgemm and dgemm); everything else is the SDK's glue.
#include <cblas.h>
#include <strings.h>

#include <charconv>
#include <string>

#include "backends/openblas/gemm.h"
#include "backends/sdk/adapter.h"
#include "backends/sdk/glue.h"

namespace ulpscope::openblas {
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

class OpenBlasAdapter : public sdk::Adapter {
 public:
  Capabilities Hello(const HelloRequest& request) override {
    Capabilities can;
    can.name = "openblas";
    can.backends = {"openblas"};
    can.versions = {{"openblas", Version()}, {"corename", openblas_get_corename()}};
    can.knobs = {{"threads", {"1", "N"}},
                 {"openblas_coretype", {"detected", "Haswell", "SkylakeX", "Cooperlake", "Zen"}}};
    can.ops = sdk::GlueOps();
    for (const char* op : {"matmul", "mm", "bmm", "linear", "addmm", "baddbmm"}) can.ops.emplace_back(op);
    for (const std::string& name : AllDTypeNames()) can.dtypes.push_back(name);
    can.scopes = {"no_grad", "enable_grad"};
    can.capabilities = {"out", "preferred_element_type"};
    if (request.backend != "openblas")
      can.error = "this adapter serves openblas, not '" + request.backend + "'";
    if (request.device != "cpu") can.error = "OpenBLAS runs on the cpu, not on '" + request.device + "'";
    openblas_set_num_threads(1);
    const std::string problem = Apply(request.knobs);
    if (!problem.empty()) can.error = problem;
    return can;
  }

  RunReply Run(const RunRequest& request) override {
    const std::string problem = Apply(request.knobs);
    if (!problem.empty()) return RunReply::Unsupported(problem);
    RunReply reply = sdk::RunWithGlue(request, GemmKernel);
    reply.knobs = {{"threads", std::to_string(openblas_get_num_threads())},
                   {"openblas_coretype", openblas_get_corename()}};
    return reply;
  }

  int64_t Threads() override { return openblas_get_num_threads(); }

 private:
  /// "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..." -> "0.3.21"
  static std::string Version() {
    const std::string config = openblas_get_config();
    const size_t begin = config.find(' ');
    if (begin == std::string::npos) return config;
    return config.substr(begin + 1, config.find(' ', begin + 1) - begin - 1);
  }

  /// Sets what can be set now, checks what had to be set before the library was loaded. "" or what is wrong.
  static std::string Apply(const std::map<std::string, std::string>& knobs) {
    for (const auto& [knob, value] : knobs) {
      if (knob == "threads") {
        const std::optional<int> count = ThreadCount(value);
        if (!count) return "knob threads=" + value + " is no count";
        openblas_set_num_threads(*count);
        if (openblas_get_num_threads() != *count) {
          return "knob threads=" + value + ": OpenBLAS keeps to " +
                 std::to_string(openblas_get_num_threads());
        }
      } else if (knob == "openblas_coretype") {
        // OpenBLAS falls back in silence where it does not know the name, or where another core type stands
        // for it.
        if (value != "detected" && strcasecmp(value.c_str(), openblas_get_corename()) != 0) {
          return "knob openblas_coretype=" + value + ": OpenBLAS runs as " + openblas_get_corename();
        }
      } else {
        return "unknown knob '" + knob + "'";
      }
    }
    return {};
  }
};

}  // namespace
}  // namespace ulpscope::openblas

int main() {
  ulpscope::openblas::OpenBlasAdapter adapter;
  return ulpscope::sdk::ServeAdapter(adapter);
}
