// Reading what kineto recorded.
#include "backends/torch/kernels.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <vector>

#include "backends/torch/op_kinds.h"

namespace ulpscope::torch_backend {
namespace {

namespace profiler = torch::autograd::profiler;
using profiler::KinetoEvent;

/// Ops of one thread, put under each other by their times.
class Nesting {
 public:
  explicit Nesting(RecordedOps* ops) : ops_(*ops) {}

  int64_t Add(const KinetoEvent& event) {
    auto& open = open_[event.startThreadId()];
    while (!open.empty() && open.back().second <= event.startNs()) open.pop_back();
    const int64_t id = New(event.name(), open.empty() ? 0 : open.back().first, event.durationNs());
    open.emplace_back(id, event.endNs());
    return id;
  }

  int64_t New(const std::string& op, int64_t parent, uint64_t ns) {
    TraceNode& node = ops_.nodes.emplace_back();
    node.id = static_cast<int64_t>(ops_.nodes.size()) - 1;
    node.parent = parent;
    node.stage = "profile";
    node.op = op;
    node.us = static_cast<double>(ns) / 1e3;
    return node.id;
  }

 private:
  RecordedOps& ops_;
  std::map<uint64_t, std::vector<std::pair<int64_t, uint64_t>>> open_;  ///< node and its end
};

RecordedOps NodesOf(const std::vector<KinetoEvent>& events, std::string* problem) {
  std::vector<const KinetoEvent*> ordered;
  for (const KinetoEvent& event : events) ordered.push_back(&event);
  std::ranges::stable_sort(ordered, [](const KinetoEvent* a, const KinetoEvent* b) {
    return a->startNs() != b->startNs() ? a->startNs() < b->startNs() : a->endNs() > b->endNs();
  });
  RecordedOps ops;
  Nesting nesting(&ops);
  nesting.New("run under the profiler", -1, 0);
  ops.nodes.front().us.reset();
  std::map<uint64_t, int64_t> by_correlation;
  int64_t kernels = 0;
  for (const KinetoEvent* event : ordered) {
    if (event->deviceType() != c10::DeviceType::CPU || !event->name().starts_with("aten::")) continue;
    by_correlation[event->correlationId()] = nesting.Add(*event);
  }
  for (const KinetoEvent* event : ordered) {
    if (event->deviceType() == c10::DeviceType::CPU) continue;
    const auto op = by_correlation.find(event->linkedCorrelationId());
    if (op == by_correlation.end()) continue;
    nesting.New(event->name(), op->second, event->durationNs());
    ++kernels;
  }
  if (ops.nodes.size() == 1)
    *problem = "PyTorch's profiler saw no op";
  else if (kernels == 0)
    *problem = "PyTorch's profiler saw no kernel of a device";
  return ops;
}

}  // namespace

RecordedOps KernelsUnderOps(const std::function<void()>& run, ProfiledDevice device, std::string* problem) {
  namespace impl = torch::profiler::impl;
  try {
    const impl::ProfilerConfig config(impl::ProfilerState::KINETO);
    std::set<impl::ActivityType> activities{impl::ActivityType::CPU};
    if (device == ProfiledDevice::kCuda) activities.insert(impl::ActivityType::CUDA);
    profiler::prepareProfiler(config, activities);
    profiler::enableProfiler(config, activities);
    run();
    const auto result = profiler::disableProfiler();
    return NodesOf(result->events(), problem);
  } catch (const std::exception& error) {
    *problem = error.what();
    return {};
  }
}

}  // namespace ulpscope::torch_backend
