// torch-traced: cutting the program, tracing, running, comparing; casts read from the traced graph.
#include "backends/torch/traced.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "backends/torch/failure.h"
#include "backends/torch/op_kinds.h"
#include "backends/torch/trace.h"
#include "backends/torch/values.h"

namespace ulpscope::torch_backend {
namespace {

namespace jit = torch::jit;

constexpr int kRuns = 3;

/// Steps that are no tensor op, or (empty) whose result would not be the buffer that the program poisoned.
bool RunsEagerly(const std::string& op) {
  return op == "empty" || op == "set_data" || op == "module_to" || op == "backward" || op == "detach" ||
         op == "detach_" || op == "sync";
}

/// Why an autocast scope cannot be traced whole; "" when it can.
std::string ObstacleIn(const std::vector<sdk::Step>& steps) {
  for (const sdk::Step& step : steps) {
    if (step.op == "empty" || step.op == "detach" || step.op == "sync") continue;
    if (RunsEagerly(step.op) || step.op == "no_grad" || step.op == "enable_grad") return step.op;
    if (const std::string inner = ObstacleIn(step.steps); !inner.empty()) return inner;
  }
  return {};
}

/// A copy with the same layout that the same graph treats alike.
at::Tensor Scratch(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  at::Tensor copy = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options());
  copy.copy_(tensor.detach());
  copy.set_requires_grad(tensor.requires_grad());
  return copy;
}

std::vector<at::Tensor> Tensors(const jit::Stack& stack) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : stack) tensors.push_back(value.toTensor());
  return tensors;
}

/// The region's one result, a tuple (a TorchScript function returns exactly one value), taken apart.
jit::Stack Unpacked(const jit::Stack& stack) {
  const auto& elements = stack[0].toTupleRef().elements();
  return jit::Stack(elements.begin(), elements.end());
}

std::optional<at::ScalarType> TypeOf(const jit::Value* value) {
  const auto type = value->type()->cast<c10::TensorType>();
  return type ? type->scalarType() : std::nullopt;
}

/// The op that uses the cast's result, if it is one alone; the cast's own name otherwise.
std::string UserOf(const jit::Node* node) {
  const auto& uses = node->output()->uses();
  if (uses.size() == 1 && uses[0].user->kind() != c10::prim::Return)
    return uses[0].user->kind().toQualString();
  return node->kind().toQualString();
}

bool IsCast(const jit::Node* node) {
  const std::string kind = node->kind().toQualString();
  return (kind == "aten::to" || kind == "aten::_to_copy" || kind == "aten::type_as") &&
         node->outputs().size() == 1;
}

std::optional<Cast> CastOf(const jit::Node* node) {
  if (!IsCast(node)) return std::nullopt;
  const std::optional<at::ScalarType> from = TypeOf(node->input(0));
  const std::optional<at::ScalarType> to = TypeOf(node->output());
  if (!from || !to || *from == *to) return std::nullopt;
  Cast cast{.from = DTypeName(*from),
            .to = DTypeName(*to),
            .bytes = 0,
            .under = UserOf(node),
            .stage = "torchscript"};
  if (const auto sizes = node->output()->type()->expect<c10::TensorType>()->sizes().concrete_sizes()) {
    cast.shape = *sizes;
    cast.bytes = ElementCount(cast.shape) * static_cast<int64_t>(c10::elementSize(*to));
  }
  return cast;
}

/// Casts of the graph in order.
std::vector<Cast> CastsOf(const jit::Graph& graph, const std::map<const jit::Node*, int64_t>& ids) {
  std::vector<Cast> casts;
  for (const jit::Node* node : graph.nodes()) {
    std::optional<Cast> cast = CastOf(node);
    if (!cast) continue;
    if (const auto id = ids.find(node); id != ids.end()) cast->node = id->second;
    casts.push_back(std::move(*cast));
  }
  return casts;
}

TraceTensor Described(const jit::Value* value, at::ScalarType type) {
  TraceTensor tensor{.dtype = DTypeName(type)};
  if (const auto sizes = value->type()->expect<c10::TensorType>()->sizes().concrete_sizes())
    tensor.shape = *sizes;
  return tensor;
}

std::vector<TraceTensor> TensorsAmong(at::ArrayRef<const jit::Value*> values) {
  std::vector<TraceTensor> tensors;
  for (const jit::Value* value : values) {
    if (const auto type = TypeOf(value)) tensors.push_back(Described(value, *type));
  }
  return tensors;
}

/// The tensor ops of the graph below a root node that names the region. Ids begin at 0; `of` holds the id of
/// each.
std::vector<TraceNode> NodesOf(const jit::Graph& graph, const std::string& region,
                               std::map<const jit::Node*, int64_t>* of) {
  std::vector<TraceNode> nodes{{.id = 0, .parent = -1, .stage = "torchscript", .op = region}};
  for (const jit::Node* node : graph.nodes()) {
    auto outputs = TensorsAmong(node->outputs());
    if (outputs.empty() && !node->kind().is_aten()) continue;  // constants and lists: no tensor
    const auto id = static_cast<int64_t>(nodes.size());
    (*of)[node] = id;
    TraceNode entry{.id = id,
                    .parent = 0,
                    .stage = "torchscript",
                    .kind = KindOf(node->kind().toQualString()),
                    .op = node->kind().toQualString(),
                    .inputs = TensorsAmong(node->inputs()),
                    .outputs = std::move(outputs)};
    for (const jit::Value* input : node->inputs()) {
      const auto source = of->find(input->node());
      if (source != of->end() && source->second != id) entry.from.push_back(source->second);
    }
    SettleKind(&entry);
    nodes.push_back(std::move(entry));
  }
  return nodes;
}

int64_t OpCount(const jit::Graph& graph) {
  int64_t count = 0;
  for (const jit::Node* node : graph.nodes()) count += node->kind().is_aten() ? 1 : 0;
  return count;
}

}  // namespace

/// One traced stretch: each distinct tensor is one input, however many names it has.
struct TracedRunner::Region {
  std::vector<std::string> input_names;    ///< one name per input
  std::map<std::string, size_t> input_of;  ///< every name that is read -> its input
  std::vector<at::Tensor> inputs;
  std::vector<std::string> output_names;
  std::vector<at::Tensor> traced;  ///< what the trace itself computed, eagerly

  jit::Stack ScratchStack() const {
    jit::Stack stack;
    for (const at::Tensor& input : inputs) stack.emplace_back(Scratch(input));
    return stack;
  }
  jit::Stack Stack() const { return jit::Stack(inputs.begin(), inputs.end()); }
};

void TracedRunner::Run(const std::vector<sdk::Step>& steps) {
  std::vector<sdk::Step> pending;
  const auto flush = [&] {
    if (!pending.empty()) RunRegion(pending);
    pending.clear();
  };
  for (const sdk::Step& step : steps) {
    if (step.op == "no_grad" || step.op == "enable_grad") {
      // A trace does not know the grad mode it was made under, so the scope is kept around its own regions.
      flush();
      machine_.InScope(step, [&] { Run(step.steps); });
    } else if (step.op == "autocast") {
      if (const std::string obstacle = ObstacleIn(step.steps); !obstacle.empty()) {
        throw Unsupported("torch-traced: step '" + obstacle +
                          "' inside an autocast scope: a trace cannot hold it, and cutting "
                          "the scope would change what autocast caches");
      }
      pending.push_back(step);
    } else if (RunsEagerly(step.op)) {
      flush();
      machine_.RunStep(step);
      if (step.op != "empty" && step.op != "sync") {
        reply_.notes.push_back("step " + step.op + " ran eagerly, outside the traced regions");
      }
    } else {
      pending.push_back(step);
    }
  }
  flush();
}

void TracedRunner::HoistEmpty(const std::vector<sdk::Step>& steps) {
  for (const sdk::Step& step : steps) {
    if (step.op == "empty") machine_.RunStep(step);
    HoistEmpty(step.steps);
  }
}

void TracedRunner::RunInRegion(const std::vector<sdk::Step>& steps) {
  for (const sdk::Step& step : steps) {
    if (step.op == "empty") continue;  // made before the trace, so that it is the program's own buffer
    if (step.op == "autocast") {
      machine_.InScope(step, [&] { RunInRegion(step.steps); });
    } else {
      machine_.RunStep(step);
    }
  }
}

void TracedRunner::Compare(const Region& region, const std::vector<at::Tensor>& outputs,
                           const std::string& run) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (SameBits(region.traced[i], outputs[i])) continue;
    reply_.notes.push_back("'" + region.output_names[i] + "' of " + run +
                           " differs from what the trace computed");
  }
}

void TracedRunner::RunRegion(const std::vector<sdk::Step>& steps) {
  HoistEmpty(steps);
  const StepNames names = NamesOf(steps);
  Region region;
  for (const std::string& name : names.read) {
    const auto found = machine_.values().find(name);
    if (found == machine_.values().end()) continue;
    const auto same = std::ranges::find_if(
        region.inputs, [&](const at::Tensor& tensor) { return tensor.is_same(found->second); });
    region.input_of[name] = static_cast<size_t>(same - region.inputs.begin());
    if (same != region.inputs.end()) continue;
    region.inputs.push_back(found->second);
    region.input_names.push_back(name);
  }
  region.output_names.assign(names.made.begin(), names.made.end());

  const std::map<std::string, at::Tensor> before = machine_.values();
  const auto traced = [&](jit::Stack stack) {
    for (const auto& [name, input] : region.input_of) machine_.values()[name] = stack[input].toTensor();
    RunInRegion(steps);
    std::vector<c10::IValue> outputs;
    for (const std::string& name : region.output_names) outputs.emplace_back(machine_.values().at(name));
    return jit::Stack{c10::ivalue::Tuple::create(std::move(outputs))};
  };
  std::shared_ptr<jit::Graph> graph;
  {
    const TracePause pause;
    auto [state, outputs] = jit::tracer::trace(
        region.ScratchStack(), traced, [](const at::Tensor&) { return std::string(); },
        /*strict=*/true, /*force_outplace=*/false, /*self=*/nullptr, region.input_names);
    graph = state->graph;
    region.traced = Tensors(Unpacked(outputs));
    machine_.values() = before;
  }
  const std::string region_name = "region_" + std::to_string(++regions_);
  if (trace_ == Trace::kWanted) {
    std::map<const jit::Node*, int64_t> ids;
    RecordedOps shown{.nodes = NodesOf(*graph, region_name, &ids)};
    shown.casts = CastsOf(*graph, ids);
    Append(std::move(shown), &reply_);
  }
  jit::GraphFunction function(region_name, graph, nullptr);
  for (int run = 1; run <= kRuns; ++run) {
    std::optional<TracePause> pause;
    if (run < kRuns) pause.emplace();
    jit::Stack stack = run < kRuns ? region.ScratchStack() : region.Stack();
    function.run(stack);
    const std::vector<at::Tensor> outputs = Tensors(Unpacked(stack));
    Compare(region, outputs, "run " + std::to_string(run));
    if (run < kRuns) continue;
    for (size_t i = 0; i < outputs.size(); ++i) machine_.values()[region.output_names[i]] = outputs[i];
  }
  for (const std::string& name : region.output_names) compiled_.insert(name);
  reply_.notes.push_back("traced region " + std::to_string(regions_) + ": " +
                         std::to_string(OpCount(*graph)) + " ops, run " + std::to_string(kRuns) + " times");
}

void TracedRunner::FillParts(const std::vector<std::string>& observe) {
  for (const std::string& name : observe) {
    if (!reply_.tensors.contains(name)) continue;
    const bool gradient = !machine_.values().contains(name);
    reply_.parts[name] = gradient ? "backward" : compiled_.contains(name) ? "compiled" : "eager";
  }
}

}  // namespace ulpscope::torch_backend
