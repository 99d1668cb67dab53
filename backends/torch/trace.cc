// The trace of ops: RecordFunction callbacks, and who made which memory.
#include "backends/torch/trace.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "backends/torch/op_kinds.h"
#include "backends/torch/values.h"
#include "harness/base/find.h"

namespace ulpscope::torch_backend {
namespace {

using Clock = std::chrono::steady_clock;

/// The node that made a piece of memory. The storage object is held weakly: its data may go, its address
/// cannot be given to a later tensor that would then be mistaken for it.
struct Made {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  int64_t version = 0;
  std::optional<size_t> node = {};  ///< none so far
  size_t known_since = 0;           ///< the node at which it was first met, as an operand or made
};

struct Recorder {
  std::mutex mutex;
  RecordedOps ops;
  std::unordered_map<const c10::StorageImpl*, Made> made;
  std::atomic<int64_t> lost = 0;
  std::atomic<int> paused = 0;
  std::atomic<bool> on = false;
};

Recorder& TheRecorder() {
  static Recorder recorder;
  return recorder;
}

/// Indices of the nodes that are open on this thread, outermost first.
std::vector<size_t>& OpenNodes() {
  thread_local std::vector<size_t> nodes;
  return nodes;
}

bool IsPartOfConversion(const std::string& name) {
  return name == "aten::copy_" || name == "aten::_to_copy" || name == "aten::to";
}

/// The nearest enclosing node that is no part of the conversion; the outermost part where there is none.
const std::string& Enclosing(const Recorder& recorder) {
  static const std::string kNothing;
  const std::vector<size_t>& open = OpenNodes();
  for (size_t i = open.size(); i-- > 0;) {
    const std::string& op = recorder.ops.nodes[open[i]].op;
    if (!IsPartOfConversion(op)) return op;
  }
  return open.empty() ? kNothing : recorder.ops.nodes[open.front()].op;
}

int64_t VersionOf(const at::Tensor& tensor) { return tensor.is_inference() ? 0 : tensor._version(); }

template <class Use>
void ForEachTensor(c10::ArrayRef<const c10::IValue> values, Use use) {
  for (const c10::IValue& value : values) {
    if (value.isTensor()) {
      if (value.toTensor().defined()) use(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) {
        if (tensor.defined()) use(tensor);
      }
    }
  }
}

void AddTensors(c10::ArrayRef<const c10::IValue> values, std::vector<TraceTensor>* to) {
  ForEachTensor(values, [&](const at::Tensor& tensor) {
    to->push_back({.dtype = DTypeName(tensor.scalar_type()), .shape = tensor.sizes().vec()});
  });
}

/// The nodes that made the operands, each once; of a view, whoever made the memory.
std::vector<int64_t> SourcesOf(c10::ArrayRef<const c10::IValue> values, const Recorder& recorder) {
  std::vector<int64_t> sources;
  ForEachTensor(values, [&](const at::Tensor& tensor) {
    if (!tensor.has_storage()) return;
    const auto made = recorder.made.find(tensor.storage().unsafeGetStorageImpl());
    if (made == recorder.made.end() || !made->second.node) return;
    const auto id = static_cast<int64_t>(*made->second.node);
    if (!Contains(sources, id)) sources.push_back(id);
  });
  return sources;
}

/// An open node; `written` is what a conversion writes.
struct Node : at::ObserverContext {
  size_t index = 0;
  Clock::time_point begin;
  at::Tensor written;
};

void RecordCast(const at::Tensor& to, const at::Tensor& from, Node* node, Recorder* recorder) {
  Cast cast{.from = DTypeName(from.scalar_type()),
            .to = DTypeName(to.scalar_type()),
            .shape = to.sizes().vec(),
            .bytes = static_cast<int64_t>(to.nbytes()),
            .under = Enclosing(*recorder),
            .stage = "dispatch",
            .node = static_cast<int64_t>(node->index)};
  recorder->ops.nodes[node->index].kind = TraceKind::kConvert;
  node->written = to;
  recorder->ops.casts.push_back(std::move(cast));
}

/// The entry for the memory of `tensor`, new or not; null where it has none.
Made* EntryOf(const at::Tensor& tensor, Recorder* recorder) {
  if (!tensor.has_storage()) return nullptr;
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  const auto known = recorder->made.find(storage);
  if (known != recorder->made.end()) return &known->second;
  const auto owner = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage);
  Made made{.storage = c10::weak_intrusive_ptr<c10::StorageImpl>(owner), .version = -1, .known_since = 0};
  return &recorder->made.emplace(storage, std::move(made)).first->second;
}

/// Memory that no node that has ended made: it was there before, or an open node is making it.
void RememberOperand(const at::Tensor& tensor, size_t node, Recorder* recorder) {
  Made* made = EntryOf(tensor, recorder);
  if (made == nullptr || made->version >= 0) return;
  made->version = VersionOf(tensor);
  made->known_since = node;
}

/// Records at the end of `node` that it made the memory: how far the version counts differs with the layer it
/// is called from. A node that met the memory in its present version made nothing (a view); a node that
/// encloses the maker counts as the maker. Returns whether `node` does.
bool RememberMade(const at::Tensor& tensor, size_t node, Recorder* recorder) {
  Made* made = EntryOf(tensor, recorder);
  if (made == nullptr) return false;
  if (made->version == VersionOf(tensor) && made->known_since <= node) return false;
  made->node = made->known_since = node;
  made->version = VersionOf(tensor);
  return true;
}

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction& function) {
  Recorder& recorder = TheRecorder();
  if (recorder.paused > 0) return nullptr;
  auto node = std::make_unique<Node>();
  try {
    const std::scoped_lock lock(recorder.mutex);
    const c10::ArrayRef<const c10::IValue> inputs = function.inputs();
    node->index = recorder.ops.nodes.size();
    TraceNode& made = recorder.ops.nodes.emplace_back();
    made.id = static_cast<int64_t>(node->index);
    made.parent = OpenNodes().empty() ? -1 : static_cast<int64_t>(OpenNodes().back());
    made.stage = "dispatch";
    made.op = function.name();
    made.kind = KindOf(made.op);
    AddTensors(inputs, &made.inputs);
    ForEachTensor(inputs, [&](const at::Tensor& tensor) { RememberOperand(tensor, node->index, &recorder); });
    made.from = SourcesOf(inputs, recorder);
    OpenNodes().push_back(node->index);
    if (made.op == "aten::copy_") {
      if (inputs.size() < 2 || !inputs[0].isTensor() || !inputs[1].isTensor()) {
        recorder.lost++;
      } else if (inputs[0].toTensor().defined() && inputs[1].toTensor().defined() &&
                 inputs[0].toTensor().scalar_type() != inputs[1].toTensor().scalar_type()) {
        RecordCast(inputs[0].toTensor(), inputs[1].toTensor(), node.get(), &recorder);
      }
    }
  } catch (...) {
    recorder.lost++;  // an exception here would be turned into a warning and the node forgotten
  }
  node->begin = Clock::now();  // last: what stands above is no part of the op
  return node;
}

void OnEnd(const at::RecordFunction& function, at::ObserverContext* context) {
  const Clock::time_point end = Clock::now();
  if (context == nullptr) return;  // began in a pause
  Recorder& recorder = TheRecorder();
  try {
    const std::scoped_lock lock(recorder.mutex);
    const auto* node = static_cast<Node*>(context);
    if (OpenNodes().empty() || OpenNodes().back() != node->index) {
      recorder.lost++;
    } else {
      OpenNodes().pop_back();
    }
    if (node->index >= recorder.ops.nodes.size()) return;  // of a recording that was taken meanwhile
    TraceNode& made = recorder.ops.nodes[node->index];
    made.us = std::chrono::duration<double, std::micro>(end - node->begin).count();
    const c10::ArrayRef<const c10::IValue> outputs(function.outputs().data(), function.outputs().size());
    AddTensors(outputs, &made.outputs);
    SettleKind(&made);
    bool makes = false;
    ForEachTensor(outputs, [&](const at::Tensor& tensor) {
      makes = RememberMade(tensor, node->index, &recorder) || makes;
    });
    if (node->written.defined()) {
      if (Made* written = EntryOf(node->written, &recorder); written != nullptr)
        written->node = written->known_since = node->index;
    }
    // A node that reads a view is linked to the node that made the memory: the view itself reads nothing that
    // is used.
    if (!makes && made.kind == TraceKind::kView) made.from.clear();
  } catch (...) {
    recorder.lost++;
  }
}

}  // namespace

OpTrace::OpTrace() {
  Recorder& recorder = TheRecorder();
  recorder.ops = {};
  recorder.made.clear();
  recorder.lost = 0;
  recorder.on = true;
  handle_ =
      at::addGlobalCallback(at::RecordFunctionCallback(OnStart, OnEnd)
                                .needsInputs(true)
                                .needsOutputs(true)
                                .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

OpTrace::~OpTrace() {
  Stop();
  TheRecorder().made.clear();
}

void OpTrace::Stop() {
  if (recording_) at::removeCallback(handle_);
  recording_ = false;
  TheRecorder().on = false;
}

RecordedOps OpTrace::Take() {
  Stop();
  TheRecorder().made.clear();
  RecordedOps ops = std::exchange(TheRecorder().ops, {});
  for (Cast& cast : ops.casts) {
    // The time of a conversion includes all of its parts, and the allocation of its result: it is that of the
    // outermost part.
    auto at = static_cast<size_t>(cast.node);
    while (ops.nodes[at].parent >= 0 &&
           IsPartOfConversion(ops.nodes[static_cast<size_t>(ops.nodes[at].parent)].op))
      at = static_cast<size_t>(ops.nodes[at].parent);
    cast.us = ops.nodes[at].us;
  }
  return ops;
}

int64_t OpTrace::lost() const { return TheRecorder().lost; }

namespace {

double MedianOf(std::vector<double> times) {
  std::ranges::sort(times);
  const size_t half = times.size() / 2;
  return times.size() % 2 == 1 ? times[half] : (times[half - 1] + times[half]) / 2;
}

/// The median of what `of` reads of each recording; nothing where one has none.
template <class Of>
std::optional<double> MedianTime(const std::vector<RecordedOps>& recordings, Of of) {
  std::vector<double> times;
  for (const RecordedOps& each : recordings) {
    const std::optional<double> time = of(each);
    if (!time) return std::nullopt;
    times.push_back(*time);
  }
  return MedianOf(std::move(times));
}

}  // namespace

bool TakeDurations(const std::vector<RecordedOps>& again, RecordedOps* first) {
  const auto same = [](const TraceNode& a, const TraceNode& b) {
    return a.op == b.op && a.parent == b.parent && a.inputs.size() == b.inputs.size();
  };
  for (const RecordedOps& each : again) {
    if (each.casts.size() != first->casts.size() ||
        !std::equal(each.nodes.begin(), each.nodes.end(), first->nodes.begin(), first->nodes.end(), same))
      return false;
  }
  for (size_t i = 0; i < first->nodes.size(); ++i)
    first->nodes[i].us = MedianTime(again, [i](const RecordedOps& each) { return each.nodes[i].us; });
  for (size_t i = 0; i < first->casts.size(); ++i)
    first->casts[i].us = MedianTime(again, [i](const RecordedOps& each) { return each.casts[i].us; });
  return true;
}

void Append(RecordedOps ops, sdk::RunReply* reply) {
  int64_t base = 0;
  for (const TraceNode& node : reply->nodes) base = std::max(base, node.id + 1);
  for (TraceNode& node : ops.nodes) {
    node.id += base;
    if (node.parent >= 0) node.parent += base;
    for (int64_t& source : node.from) source += base;
    reply->nodes.push_back(std::move(node));
  }
  for (Cast& cast : ops.casts) {
    if (cast.node >= 0) cast.node += base;
    reply->casts.push_back(std::move(cast));
  }
}

TraceLabel::TraceLabel(std::string name) : recorded_(TheRecorder().on && TheRecorder().paused == 0) {
  if (!recorded_) return;
  Recorder& recorder = TheRecorder();
  const std::scoped_lock lock(recorder.mutex);
  const size_t index = recorder.ops.nodes.size();
  TraceNode& node = recorder.ops.nodes.emplace_back();
  node.id = static_cast<int64_t>(index);
  node.parent = OpenNodes().empty() ? -1 : static_cast<int64_t>(OpenNodes().back());
  node.stage = "dispatch";
  node.op = std::move(name);
  OpenNodes().push_back(index);
}
TraceLabel::~TraceLabel() {
  if (recorded_) OpenNodes().pop_back();
}

TracePause::TracePause() { TheRecorder().paused++; }
TracePause::~TracePause() { TheRecorder().paused--; }

}  // namespace ulpscope::torch_backend
