// ulpscope-torch: the adapter for LibTorch. torch-eager calls ops one by one, torch-traced runs a TorchScript
// trace, torch-aoti an AOTInductor package.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/sdk/adapter.h"
#include "backends/torch/aoti.h"
#include "backends/torch/device.h"
#include "backends/torch/failure.h"
#include "backends/torch/kernels.h"
#include "backends/torch/knobs.h"
#include "backends/torch/library.h"
#include "backends/torch/machine.h"
#include "backends/torch/memory.h"
#include "backends/torch/trace.h"
#include "backends/torch/traced.h"
#include "harness/base/find.h"
#include "harness/words/knobs.h"

namespace ulpscope::torch_backend {
namespace {

using sdk::Capabilities;
using sdk::HelloRequest;
using sdk::RunReply;
using sdk::RunRequest;

constexpr const char* kBackends[] = {"torch-eager", "torch-traced", "torch-aoti"};

/// PyTorch's warnings as notes: they show what a result depends on ("... falls back to ...").
class WarningCollector : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override { warnings_.push_back("warning: " + warning.msg()); }
  std::vector<std::string> Take() { return std::move(warnings_); }

 private:
  std::vector<std::string> warnings_;
};

/// The wheel's own version, "2.13.0+cpu": the headers leave out the local part, which distinguishes two
/// libraries.
std::string Version() {
  std::ifstream file(LibraryFolder() + "/../version.py");
  const std::string key = "__version__ = '";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return line.substr(key.size(), line.find('\'', key.size()) - key.size());
  }
  return TORCH_VERSION;
}

class TorchAdapter : public sdk::Adapter {
 public:
  /// `compiler`: the command that makes the packages of torch-aoti.
  explicit TorchAdapter(std::vector<std::string> compiler)
      : command_(compiler), compiler_(std::move(compiler)) {}

  Capabilities Hello(const HelloRequest& request) override {
    Capabilities can;
    can.name = "torch";
    can.backends.assign(std::begin(kBackends), std::end(kBackends));
    can.versions = {{"torch", Version()}};
    scope_ = {.backend = request.backend, .device = request.device.substr(0, request.device.find(':'))};
    can.knobs = KnobsTakenBy(scope_.backend, scope_.device);
    can.ops = VocabularyWords();
    for (const std::string& name : AllDTypeNames()) can.dtypes.push_back(name);
    can.scopes = {"autocast", "no_grad", "enable_grad"};
    can.capabilities = {"autograd", "out", "aten", "trace"};
    can.devices = {"cpu", "cuda"};
    if (!Contains(can.backends, request.backend)) {
      can.error = "this adapter does not serve '" + request.backend + "'";
    } else if (request.backend == "torch-aoti" && request.device != "cpu") {
      can.error = "device '" + request.device + "': torch-aoti makes packages for the cpu";
    } else if (const Result<at::Device> device = OpenDevice(request.device); !device) {
      can.error = device.error().message;
    } else {
      device_ = *device;
      at::set_num_interop_threads(1);
      can.error = ApplyKnobs(scope_, request.knobs);
      if (request.backend == "torch-aoti") setup_ = MakeAotiSetup(command_, Version(), request.knobs);
    }
    return can;
  }

  RunReply Run(const RunRequest& request) override {
    if (const std::string problem = ApplyKnobs(scope_, request.knobs); !problem.empty())
      return RunReply::Unsupported(problem);
    WarningCollector warnings;
    const c10::WarningUtils::WarningHandlerGuard handler(&warnings);
    const c10::WarningUtils::WarnAlways always;
    RunReply reply = Execute(request);
    for (auto& [knob, value] : ReadKnobs(scope_)) reply.knobs[knob] = value;
    for (std::string& warning : warnings.Take()) reply.notes.push_back(std::move(warning));
    return reply;
  }

  int64_t Threads() override { return at::get_num_threads(); }

 private:
  RunReply Execute(const RunRequest& request) {
    const bool peak = Contains(request.program.observe, "peak_bytes");
    if (peak && scope_.backend == "torch-traced")
      return RunReply::Unsupported("observation peak_bytes: torch-traced runs a program several times over");
    RunReply reply = RunAndTime(request);
    if (peak && reply.outcome == sdk::Outcome::kCompleted)
      reply.observations["peak_bytes"] = std::to_string(PeakBytes(request));
    return reply;
  }

  /// Measured in a run of its own: everything is set up by then, and nothing is recorded beside it.
  int64_t PeakBytes(RunRequest request) {
    request.trace = request.timed = false;
    MemoryPeak memory;
    memory_ = &memory;
    RunOnce(request);
    memory_ = nullptr;
    return memory.Peak();
  }

  RunReply RunAndTime(const RunRequest& request) {
    RunReply reply = RunOnce(request);
    const bool scheduled = request.trace && !request.schedule.empty();
    if ((!request.timed && !scheduled) || reply.outcome != sdk::Outcome::kCompleted) {
      Append(std::move(ops_), &reply);
      return reply;
    }
    // The kernels are set up now: further runs show the time of the ops alone.
    RecordedOps first = std::move(ops_);
    const std::vector<int64_t> schedule = scheduled ? request.schedule : std::vector<int64_t>{0, 0, 1};
    for (int64_t i = 0; i < schedule[0] + schedule[1]; ++i) RunOnce(request);
    std::vector<RecordedOps> active;
    for (int64_t i = 0; i < schedule[2]; ++i) {
      RunOnce(request);
      active.push_back(std::move(ops_));
    }
    if (!TakeDurations(active, &first)) {
      reply.notes.push_back("durations are those of the first run: a later one took other ops");
    } else if (scheduled) {
      reply.notes.push_back("durations: medians of " + std::to_string(schedule[2]) + " runs, after " +
                            std::to_string(schedule[0]) + " that waited and " + std::to_string(schedule[1]) +
                            " that warmed up");
    }
    Append(std::move(first), &reply);
    if (device_.is_cuda() && scope_.backend == "torch-eager") AddKernels(request, &reply);
    return reply;
  }

  /// The kernels that each op launched, from a run of its own under PyTorch's profiler.
  void AddKernels(RunRequest request, RunReply* reply) {
    request.trace = request.timed = false;
    std::string problem;
    RecordedOps kernels = KernelsUnderOps(
        [&] {
          RunOnce(request);
          Synchronize(device_);
        },
        ProfiledDevice::kCuda, &problem);
    if (!problem.empty()) reply->notes.push_back("profile: " + problem);
    Append(std::move(kernels), reply);
  }

  /// Leaves what the dispatcher saw in ops_.
  RunReply RunOnce(const RunRequest& request) {
    std::optional<OpTrace> trace;
    RunReply reply;
    ops_ = {};
    try {
      Machine machine(request, device_);
      if (memory_ != nullptr) memory_->Begin();
      if (request.trace) trace.emplace();
      const sdk::Stopwatch stopwatch;
      const std::function<void()> fill_parts = RunOn(machine, request, reply);
      Synchronize(device_);
      reply.durations_ms["run"] = stopwatch.Milliseconds();
      TakeTrace(trace, reply);
      machine.Observe(reply);
      fill_parts();
      Append({.nodes = std::move(machine.autograd_nodes())}, &reply);
    } catch (...) {
      RunReply failed = ReplyForCurrentException();
      failed.casts = std::move(reply.casts);
      failed.nodes = std::move(reply.nodes);
      failed.notes = std::move(reply.notes);
      failed.knobs = std::move(reply.knobs);
      TakeTrace(trace, failed);
      return failed;
    }
    return reply;
  }

  /// Runs the program as this backend does. The function that it returns records, once the values are read,
  /// which part made them.
  std::function<void()> RunOn(Machine& machine, const RunRequest& request, RunReply& reply) {
    const std::vector<std::string>& observe = request.program.observe;
    if (scope_.backend == "torch-traced") {
      const auto runner = std::make_shared<TracedRunner>(
          machine, reply, request.trace ? TracedRunner::Trace::kWanted : TracedRunner::Trace::kNot);
      runner->Run(request.program.steps);
      return [runner, &observe] { runner->FillParts(observe); };
    }
    if (scope_.backend == "torch-aoti") {
      const auto runner = std::make_shared<AotiRunner>(machine, setup_, compiler_, reply);
      runner->Run(request.program);
      return [runner, &observe] { runner->FillParts(observe); };
    }
    machine.RunSteps(request.program.steps);
    return [] {};
  }

  void TakeTrace(std::optional<OpTrace>& trace, RunReply& reply) {
    if (!trace) return;
    ops_ = trace->Take();
    if (trace->lost() > 0)
      reply.notes.push_back("trace incomplete: " + std::to_string(trace->lost()) + " nodes lost");
    trace.reset();
  }

  RecordedOps ops_;
  MemoryPeak* memory_ = nullptr;  ///< of the run that is measured
  KnobScope scope_;
  at::Device device_ = at::kCPU;
  std::vector<std::string> command_;
  AotiSetup setup_;
  CompilerProcess compiler_;
};

}  // namespace
}  // namespace ulpscope::torch_backend

int main(int argc, char** argv) {
  // A package checks its inputs only if this is set: a wrong shape would be computed with.
  setenv("AOTI_RUNTIME_CHECK_INPUTS", "1", /*overwrite=*/1);
  ulpscope::torch_backend::TorchAdapter adapter(std::vector<std::string>(argv + 1, argv + argc));
  return ulpscope::sdk::ServeAdapter(adapter);
}
