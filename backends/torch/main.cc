// ulpscope-torch: the adapter for LibTorch. torch-eager calls ops one by one, torch-traced runs a TorchScript
// trace.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "backends/sdk/adapter.h"
#include "backends/torch/failure.h"
#include "backends/torch/knobs.h"
#include "backends/torch/machine.h"
#include "backends/torch/trace.h"
#include "backends/torch/traced.h"

namespace ulpscope::torch_backend {
namespace {

using sdk::Capabilities;
using sdk::HelloRequest;
using sdk::RunReply;
using sdk::RunRequest;

constexpr const char* kBackends[] = {"torch-eager", "torch-traced"};

/// PyTorch's warnings as notes: they say what a result rests on ("... falls back to ...").
class WarningCollector : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override { warnings_.push_back("warning: " + warning.msg()); }
  std::vector<std::string> Take() { return std::move(warnings_); }

 private:
  std::vector<std::string> warnings_;
};

/// The wheel's own version, "2.13.0+cpu": the headers leave out the local part, which tells two different
/// libraries apart.
std::string Version() {
  std::ifstream file(ULPSCOPE_TORCH_LIB "/../version.py");
  const std::string key = "__version__ = '";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return line.substr(key.size(), line.find('\'', key.size()) - key.size());
  }
  return TORCH_VERSION;
}

class TorchAdapter : public sdk::Adapter {
 public:
  Capabilities Hello(const HelloRequest& request) override {
    Capabilities can;
    can.name = "torch";
    can.backends.assign(std::begin(kBackends), std::end(kBackends));
    can.versions = {{"torch", Version()}};
    can.knobs = KnobValues();
    can.ops = VocabularyWords();
    for (const std::string& name : AllDTypeNames()) can.dtypes.push_back(name);
    can.scopes = {"autocast", "no_grad", "enable_grad"};
    can.capabilities = {"autograd", "out", "aten", "trace"};
    backend_ = request.backend;
    if (std::find(can.backends.begin(), can.backends.end(), backend_) == can.backends.end()) {
      can.error = "this adapter does not serve '" + backend_ + "'";
    } else if (request.device != "cpu") {
      can.error = "device '" + request.device + "': this adapter runs on the cpu";
    } else {
      at::set_num_interop_threads(1);
      can.error = ApplyKnobs(request.knobs);
    }
    return can;
  }

  RunReply Run(const RunRequest& request) override {
    if (const std::string problem = ApplyKnobs(request.knobs); !problem.empty())
      return RunReply::Unsupported(problem);
    WarningCollector warnings;
    const c10::WarningUtils::WarningHandlerGuard handler(&warnings);
    const c10::WarningUtils::WarnAlways always;
    RunReply reply = Execute(request);
    reply.knobs = ReadKnobs();
    for (std::string& warning : warnings.Take()) reply.notes.push_back(std::move(warning));
    return reply;
  }

  int64_t Threads() override { return at::get_num_threads(); }

 private:
  RunReply Execute(const RunRequest& request) {
    RunReply reply = RunOnce(request);
    if (!request.timed || reply.outcome != sdk::Outcome::kCompleted) {
      Append(std::move(ops_), &reply);
      return reply;
    }
    // The kernels are set up now: a second run tells what the ops take by themselves.
    RecordedOps first = std::move(ops_);
    RunOnce(request);
    if (!TakeDurations(ops_, &first))
      reply.notes.push_back("durations are those of the first run: the second one took other ops");
    Append(std::move(first), &reply);
    return reply;
  }

  /// Leaves what the dispatcher saw in ops_.
  RunReply RunOnce(const RunRequest& request) {
    std::optional<OpTrace> trace;
    RunReply reply;
    ops_ = {};
    try {
      Machine machine(request, at::kCPU);
      if (request.trace) trace.emplace();
      const sdk::Stopwatch stopwatch;
      if (backend_ == "torch-traced") {
        TracedRunner runner(machine, reply,
                            request.trace ? TracedRunner::Trace::kWanted : TracedRunner::Trace::kNot);
        runner.Run(request.program.steps);
        reply.durations_ms["run"] = stopwatch.Milliseconds();
        TakeTrace(trace, reply);
        machine.Observe(reply);
        runner.FillParts(request.program.observe);
      } else {
        machine.RunSteps(request.program.steps);
        reply.durations_ms["run"] = stopwatch.Milliseconds();
        TakeTrace(trace, reply);
        machine.Observe(reply);
      }
    } catch (...) {
      RunReply failed = ReplyForCurrentException();
      failed.casts = std::move(reply.casts);
      failed.nodes = std::move(reply.nodes);
      failed.notes = std::move(reply.notes);
      TakeTrace(trace, failed);
      return failed;
    }
    return reply;
  }

  void TakeTrace(std::optional<OpTrace>& trace, RunReply& reply) {
    if (!trace) return;
    ops_ = trace->Take();
    if (trace->lost() > 0)
      reply.notes.push_back("trace incomplete: " + std::to_string(trace->lost()) + " nodes lost");
    trace.reset();
  }

  RecordedOps ops_;
  std::string backend_;
};

}  // namespace
}  // namespace ulpscope::torch_backend

int main() {
  ulpscope::torch_backend::TorchAdapter adapter;
  return ulpscope::sdk::ServeAdapter(adapter);
}
