// The cast trace: RecordFunction callbacks and the search for redundant pairs.
#include "backends/torch/trace.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "backends/torch/values.h"

namespace ulpscope::torch_backend {
namespace {

/// What a cast made: its memory is held, so that no later tensor can be mistaken for it.
struct Made {
  c10::intrusive_ptr<c10::StorageImpl> storage;
  int64_t version = 0;
  size_t cast = 0;
};

struct Recorder {
  std::mutex mutex;
  std::vector<sdk::CastRecord> casts;
  std::map<const c10::StorageImpl*, Made> made;
  std::atomic<int64_t> lost = 0;
  std::atomic<int64_t> nodes = 0;
  std::atomic<int> paused = 0;
};

Recorder& TheRecorder() {
  static Recorder recorder;
  return recorder;
}

/// The names of the nodes that are open on this thread, outermost first.
std::vector<std::string>& OpenNodes() {
  thread_local std::vector<std::string> nodes;
  return nodes;
}

bool IsPartOfConversion(const std::string& name) {
  return name == "aten::copy_" || name == "aten::_to_copy" || name == "aten::to";
}

/// The nearest enclosing node that is no part of the conversion; the outermost part where there is none.
std::string Enclosing() {
  const std::vector<std::string>& nodes = OpenNodes();
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!IsPartOfConversion(nodes[i])) return nodes[i];
  }
  return nodes.empty() ? "" : nodes.front();
}

int64_t VersionOf(const at::Tensor& tensor) { return tensor.is_inference() ? 0 : tensor._version(); }

/// True when the values of `narrow` are all values of `wide`: such a cast loses nothing, and casting back
/// undoes it.
bool Holds(at::ScalarType wide, at::ScalarType narrow) {
  return c10::isFloatingType(wide) && c10::isFloatingType(narrow) && c10::promoteTypes(wide, narrow) == wide;
}

void RecordCast(const at::Tensor& to, const at::Tensor& from) {
  Recorder& recorder = TheRecorder();
  const std::scoped_lock lock(recorder.mutex);
  sdk::CastRecord cast{.from = DTypeName(from.scalar_type()),
                       .to = DTypeName(to.scalar_type()),
                       .shape = to.sizes().vec(),
                       .bytes = static_cast<int64_t>(to.nbytes()),
                       .under = Enclosing(),
                       .stage = "dispatch",
                       .redundant = false};
  if (from.has_storage()) {
    const auto origin = recorder.made.find(from.storage().unsafeGetStorageImpl());
    if (origin != recorder.made.end() && origin->second.version == VersionOf(from)) {
      sdk::CastRecord& first = recorder.casts[origin->second.cast];
      if (first.from == cast.to && first.to == cast.from && Holds(from.scalar_type(), to.scalar_type())) {
        first.redundant = true;
        cast.redundant = true;
      }
    }
  }
  recorder.casts.push_back(std::move(cast));
}

/// An open node; `cast_to` is what a conversion writes.
struct Node : at::ObserverContext {
  at::Tensor cast_to;
};

/// Remembers what the conversion made, at its end: how far the version counts differs with the layer it is
/// called from.
void RememberMade(const at::Tensor& tensor) {
  Recorder& recorder = TheRecorder();
  const std::scoped_lock lock(recorder.mutex);
  if (!tensor.has_storage() || recorder.casts.empty()) return;
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  recorder.made[storage] = {.storage = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage),
                            .version = VersionOf(tensor),
                            .cast = recorder.casts.size() - 1};
}

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction& function) {
  if (TheRecorder().paused > 0) return nullptr;
  auto node = std::make_unique<Node>();
  try {
    TheRecorder().nodes++;
    OpenNodes().emplace_back(function.name());
    if (OpenNodes().back() != "aten::copy_") return node;
    const c10::ArrayRef<const c10::IValue> inputs = function.inputs();
    if (inputs.size() < 2 || !inputs[0].isTensor() || !inputs[1].isTensor()) {
      TheRecorder().lost++;
      return node;
    }
    const at::Tensor& to = inputs[0].toTensor();
    const at::Tensor& from = inputs[1].toTensor();
    if (to.defined() && from.defined() && to.scalar_type() != from.scalar_type()) {
      RecordCast(to, from);
      node->cast_to = to;
    }
  } catch (...) {
    TheRecorder().lost++;  // an exception here would be turned into a warning and the node forgotten
  }
  return node;
}

void OnEnd(const at::RecordFunction&, at::ObserverContext* context) {
  if (context == nullptr) return;  // began in a pause
  try {
    if (OpenNodes().empty()) {
      TheRecorder().lost++;
    } else {
      OpenNodes().pop_back();
    }
    const auto* node = static_cast<Node*>(context);
    if (node->cast_to.defined()) RememberMade(node->cast_to);
  } catch (...) {
    TheRecorder().lost++;
  }
}

}  // namespace

CastTrace::CastTrace() {
  Recorder& recorder = TheRecorder();
  recorder.casts.clear();
  recorder.made.clear();
  recorder.lost = 0;
  recorder.nodes = 0;
  handle_ =
      at::addGlobalCallback(at::RecordFunctionCallback(OnStart, OnEnd)
                                .needsInputs(true)
                                .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

CastTrace::~CastTrace() {
  Stop();
  TheRecorder().made.clear();
}

void CastTrace::Stop() {
  if (recording_) at::removeCallback(handle_);
  recording_ = false;
}

std::vector<sdk::CastRecord> CastTrace::Take() {
  Stop();
  TheRecorder().made.clear();
  return std::move(TheRecorder().casts);
}

int64_t CastTrace::lost() const { return TheRecorder().lost; }
int64_t CastTrace::nodes() const { return TheRecorder().nodes; }

TraceLabel::TraceLabel(std::string name) { OpenNodes().push_back(std::move(name)); }
TraceLabel::~TraceLabel() { OpenNodes().pop_back(); }

TracePause::TracePause() { TheRecorder().paused++; }
TracePause::~TracePause() { TheRecorder().paused--; }

}  // namespace ulpscope::torch_backend
