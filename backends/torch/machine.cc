// The eager interpreter: the vocabulary as a table, scopes as guards, the few steps that are no op.
#include "backends/torch/machine.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "backends/torch/dispatch.h"
#include "backends/torch/failure.h"
#include "backends/torch/trace.h"
#include "backends/torch/values.h"
#include "harness/base/find.h"

namespace ulpscope::torch_backend {
namespace {

/// One word of the vocabulary: the dispatcher's name for it, and attributes that its schema calls otherwise.
struct Word {
  std::string op;
  std::map<std::string, std::string> renamed = {};
  /// The schema's names of the operands, if it has another order; an operand that a step leaves out is None.
  std::vector<std::string> operands = {};
  std::map<std::string, Attr> constants = {};  ///< arguments that every step of the word has
};

/// The words whose name or attributes are not the dispatcher's own.
const std::map<std::string, Word>& Renamed() {
  static const std::map<std::string, Word> words = {
      {"zeros", {"aten::zeros", {{"shape", "size"}}}},
      {"ones", {"aten::ones", {{"shape", "size"}}}},
      {"full", {"aten::full", {{"shape", "size"}, {"value", "fill_value"}}}},
      {"cast", {"aten::to.dtype"}},
      {"view", {"aten::view", {{"shape", "size"}}}},
      {"expand", {"aten::expand", {{"shape", "size"}}}},
      {"arange",
       {"aten::arange.start_step",
        {},
        {},
        {{"start", Attr{.value = int64_t{0}}}, {"step", Attr{.value = int64_t{1}}}}}},
      {"var", {"aten::var.correction"}},
      {"std", {"aten::std.correction"}},
      {"var_mean", {"aten::var_mean.correction"}},
      {"std_mean", {"aten::std_mean.correction"}},
      {"max", {"aten::max.dim"}},
      {"min", {"aten::min.dim"}},
      {"unbind", {"aten::unbind.int"}},
      {"index", {"aten::index.Tensor"}},
      {"norm", {"aten::linalg_vector_norm", {{"p", "ord"}}}},
      {"slice", {"aten::slice.Tensor"}},
      // The overload without a name: the other one takes a word for its padding.
      {"conv1d", {"aten::conv1d."}},
      {"conv2d", {"aten::conv2d."}},
      {"bce_with_logits", {"aten::binary_cross_entropy_with_logits"}},
      {"nll_loss", {"aten::nll_loss_nd"}},
      {"cross_entropy", {"aten::cross_entropy_loss"}},
      {"linspace", {"aten::linspace.", {{"num", "steps"}}}},
      {"instance_norm",
       {"aten::instance_norm",
        {},
        {"input", "weight", "bias", "running_mean", "running_var"},
        {{"use_input_stats", Attr{.value = true}},
         {"momentum", Attr{.value = 0.1}},
         {"eps", Attr{.value = 1e-5}},
         {"cudnn_enabled", Attr{.value = true}}}}},
      {"batch_norm",
       {"aten::batch_norm",
        {},
        {"input", "running_mean", "running_var", "weight", "bias"},
        {{"training", Attr{.value = false}},
         {"momentum", Attr{.value = 0.1}},
         {"eps", Attr{.value = 1e-5}},
         {"cudnn_enabled", Attr{.value = true}}}}},
  };
  return words;
}

/// Nothing for ops of the vocabulary that the dispatcher has not.
std::optional<Word> FindWord(const std::string& op) {
  if (op.find("::") != std::string::npos) return Word{op};
  if (const auto row = Renamed().find(op); row != Renamed().end()) return row->second;
  const OpRow* row = FindOp(op);
  const std::string name = "aten::" + op;
  return row != nullptr && row->GivesValue() && HasOp(name) ? std::optional(Word{name}) : std::nullopt;
}

/// Restores on every exit the settings that autocast changes; PyTorch has no such guard for C++.
class AutocastGuard {
 public:
  AutocastGuard(at::DeviceType device, at::ScalarType dtype, bool enabled, bool cache)
      : device_(device),
        enabled_(at::autocast::is_autocast_enabled(device)),
        cache_(at::autocast::is_autocast_cache_enabled()),
        dtype_(at::autocast::get_autocast_dtype(device)) {
    at::autocast::set_autocast_enabled(device, enabled);
    at::autocast::set_autocast_dtype(device, dtype);
    at::autocast::set_autocast_cache_enabled(cache);
    at::autocast::increment_nesting();
  }
  ~AutocastGuard() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, enabled_);
    at::autocast::set_autocast_dtype(device_, dtype_);
    at::autocast::set_autocast_cache_enabled(cache_);
  }
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  at::DeviceType device_;
  bool enabled_, cache_;
  at::ScalarType dtype_;
};

/// x[:, i, j]: a list of the indices, with nothing for the dimensions before them.
void ListIndices(const sdk::Step& step, Arguments& arguments) {
  int64_t dim = Need(ReadInt(step, "dim", 0));
  if (dim < 0) dim += arguments.positional.at(0).toTensor().dim();
  Attr::List indices(static_cast<size_t>(std::max<int64_t>(0, dim)));
  for (size_t i = 1; i < step.of.size(); ++i) indices.push_back(Attr{.value = step.of[i].name});
  arguments.positional.resize(1);
  arguments.keywords.erase("dim");
  arguments.keywords["indices"] = Attr{.value = std::move(indices)};
}

c10::IValue ScalarValue(const Attr& scalar) {
  if (const auto* flag = scalar.If<bool>()) return *flag;
  if (const auto* integer = scalar.If<int64_t>()) return *integer;
  return scalar.Number().value();
}

}  // namespace

Machine::Machine(const sdk::RunRequest& request, at::Device device) : request_(request), device_(device) {
  for (const sdk::ProgramTensor& tensor : request.program.tensors) {
    at::Tensor made = MakeTensor(request.inputs.at(tensor.name), tensor.strides, device);
    if (tensor.requires_grad) made.set_requires_grad(true);
    values_[tensor.name] = std::move(made);
  }
}

at::Tensor Machine::Value(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw Unsupported("'" + name + "' names no tensor");
  return found->second;
}

void Machine::RunSteps(const std::vector<sdk::Step>& steps) {
  for (const sdk::Step& step : steps) RunStep(step);
}

void Machine::RunStep(const sdk::Step& step) {
  if (last_ && !AreOfOneCall(last_->step, step)) last_.reset();
  if (IsScope(step.op)) return InScope(step, [&] { RunSteps(step.steps); });
  if (step.op == "sync") return;
  if (step.op == "empty") return Empty(step);
  if (step.op == "set_data") return SetData(step);
  if (step.op == "module_to") return ModuleTo(step);
  if (step.op == "detach_") return Detach(step);
  if (step.op == "backward") return Backward(step);
  CallStep(step);
}

void Machine::InScope(const sdk::Step& step, const std::function<void()>& body) {
  if (step.op == "no_grad") {
    const at::NoGradGuard guard;
    return body();
  }
  if (step.op == "enable_grad") {
    const at::AutoGradMode guard(true);
    return body();
  }
  const std::string asked = Need(ReadText(step, "device", "auto"));
  if (asked != "auto" && asked != "cpu" && asked != "cuda")
    throw Unsupported("autocast: unknown device '" + asked + "'");
  const at::DeviceType device = asked == "auto" ? device_.type() : asked == "cuda" ? at::kCUDA : at::kCPU;
  at::ScalarType dtype = at::autocast::get_autocast_dtype(device);
  if (step.Find("dtype") != nullptr) dtype = ToTorch(Need(ReadDType(step, "dtype")));
  const bool enabled = Need(ReadBool(step, "enabled", true));
  const bool cache = Need(ReadBool(step, "cache", true));
  const AutocastGuard guard(device, dtype, enabled, cache);
  body();
}

void Machine::CallStep(const sdk::Step& step) {
  const std::optional<Word> word = FindWord(step.op);
  if (step.op == "fsdp_linear") {
    throw Unsupported(
        "op 'fsdp_linear': fully_shard is written in Python; LibTorch has none (torch-aot-eager and "
        "torch-inductor serve it)");
  }
  if (!word) throw Unsupported("op '" + step.op + "': this adapter does not have it");
  if (step.attrs.contains("preferred_element_type")) {
    throw Unsupported("attribute 'preferred_element_type' of " + step.op +
                      ": PyTorch has none (it has out= and out_dtype)");
  }
  std::string op = word->op;
  Arguments arguments;
  arguments.device = device_;
  for (size_t i = 0; i < word->operands.size(); ++i) {
    arguments.keywords[word->operands[i]] = i < step.of.size() ? Attr{.value = step.of[i].name} : Attr{};
  }
  arguments.keywords.insert(word->constants.begin(), word->constants.end());
  for (const sdk::Operand& operand : step.of) {
    if (!word->operands.empty()) break;
    arguments.positional.push_back(operand.IsScalar() ? ScalarValue(*operand.scalar)
                                                      : c10::IValue(Value(operand.name)));
  }
  for (const auto& [key, value] : step.attrs) {
    if (key == kResultKey) continue;
    arguments.keywords[LookupOr(word->renamed, key, key)] = value;
  }
  if (!step.out.empty()) arguments.out = Value(step.out);
  arguments.lookup = [this](const std::string& name) { return LookupOr(values_, name, at::Tensor()); };
  if (step.op == "index") ListIndices(step, arguments);
  if (step.op == "split" && step.Find("split_size") != nullptr)
    arguments.keywords.at("split_size").If<Attr::List>() != nullptr ? void(op += ".sizes")
                                                                    : void(op += ".Tensor");
  if (!last_) last_ = Called{.step = step, .results = CallOp(op, arguments)};
  if (step.as.empty()) return;
  const auto which = static_cast<size_t>(Need(ReadInt(step, std::string(kResultKey), 0)));
  const std::vector<c10::IValue>& results = last_->results;
  const bool listed = results.size() == 1 && results[0].isTensorList();
  const size_t count = listed ? results[0].toTensorList().size() : results.size();
  if (which >= count || (!listed && !results[which].isTensor()))
    throw Unsupported("op '" + step.op + "' gives no tensor to name '" + step.as + "'");
  values_[step.as] = listed ? results[0].toTensorList().get(which) : results[which].toTensor();
}

void Machine::Empty(const sdk::Step& step) {
  const Shape shape = Need(ReadInts(step, "shape"));
  const DType dtype = step.Find("dtype") != nullptr ? Need(ReadDType(step, "dtype")) : DType::kFloat32;
  const at::Tensor made = at::empty(shape, at::TensorOptions().dtype(ToTorch(dtype)).device(device_));
  if (request_.poison) PoisonTensor(made);
  if (!step.as.empty()) values_[step.as] = made;
}

void Machine::SetData(const sdk::Step& step) {
  const TraceLabel label("set_data");
  const SetDataTo to = Need(ReadSetDataTo(step));
  if (step.of.size() != 1 || step.of[0].IsScalar()) throw Unsupported("set_data: needs one tensor");
  const at::Tensor tensor = Value(step.of[0].name);
  if (const auto* dtype = std::get_if<DType>(&to))
    tensor.set_data(tensor.variable_data().to(ToTorch(*dtype)));
  else
    tensor.set_data(Value(std::get<std::string>(to)));
}

/// torch.nn.Module.to for one parameter. Without the overwrite flag the parameter stays the same object and
/// its data (and its gradient's data) is replaced; with
/// torch.__future__.set_overwrite_module_params_on_conversion(True) a new leaf takes its name.
void Machine::ModuleTo(const sdk::Step& step) {
  const TraceLabel label("module_to");
  if (step.of.size() != 1 || step.of[0].IsScalar()) throw Unsupported("module_to: needs one tensor");
  const at::ScalarType dtype = ToTorch(Need(ReadDType(step, "dtype")));
  const bool overwrite = Need(ReadBool(step, "overwrite", false));
  const at::Tensor parameter = Value(step.of[0].name);
  const at::NoGradGuard no_grad;
  const at::Tensor applied = parameter.to(dtype);
  const at::Tensor gradient = parameter.is_leaf() ? parameter.grad() : at::Tensor();
  if (!overwrite) {
    parameter.set_data(applied);
    if (gradient.defined()) gradient.set_data(gradient.to(dtype));
    return;
  }
  at::Tensor replacement = applied.detach();
  replacement.set_requires_grad(parameter.requires_grad());
  if (gradient.defined()) {
    replacement.mutable_grad() = gradient.to(dtype).detach().set_requires_grad(gradient.requires_grad());
  }
  values_[step.of[0].name] = replacement;
}

void Machine::Detach(const sdk::Step& step) {
  const TraceLabel label("detach_");
  if (step.of.size() != 1 || step.of[0].IsScalar()) throw Unsupported("detach_: needs one tensor");
  Value(step.of[0].name).detach_().set_requires_grad(Need(ReadBool(step, "requires_grad", false)));
}

void Machine::Backward(const sdk::Step& step) {
  if (step.of.size() != 1 || step.of[0].IsScalar()) throw Unsupported("backward: needs one tensor");
  const at::Tensor loss = Value(step.of[0].name);
  const bool retain = Need(ReadBool(step, "retain_graph", false));
  at::Tensor gradient;
  if (step.Find("grad") != nullptr) {
    gradient = Value(Need(ReadText(step, "grad")));
  } else {
    gradient = at::ones_like(loss);
  }
  if (request_.trace) AddAutogradNodes(loss, "autograd graph of " + step.of[0].name, &autograd_nodes_);
  const TraceLabel label("backward");
  loss.backward(gradient, retain);
}

void Machine::Observe(sdk::RunReply& reply) const {
  const auto put = [&](const std::string& name, const at::Tensor& tensor) {
    Result<TensorData> data = ReadTensor(tensor);
    if (!data) throw Unsupported("observed '" + name + "': " + data.error().message);
    reply.tensors[name] = std::move(*data);
  };
  for (const std::string& name : request_.program.observe) {
    if (name == "peak_bytes") continue;  // of a run of its own
    if (const auto found = values_.find(name); found != values_.end()) {
      put(name, found->second);
      continue;
    }
    const sdk::ObservedName split = sdk::SplitObserved(name);
    if (split.property == "grad") {
      const at::Tensor tensor = Value(split.value);
      const at::Tensor gradient = tensor.is_leaf() || tensor.retains_grad() ? tensor.grad() : at::Tensor();
      if (gradient.defined()) {
        put(name, gradient);
      } else {
        reply.observations[name] = "none";
      }
    } else if (split.property == "grad_metadata_dtype") {
      reply.observations[name] = GradMetadataDType(Value(split.value));
    } else if (split.property == "grad_dtype") {
      reply.observations[name] = GradDType(Value(split.value));
    } else {
      throw Unsupported("observation '" + name + "': this adapter does not have it");
    }
  }
}

std::vector<std::string> VocabularyWords() {
  std::vector<std::string> words = {"empty", "aten::*"};
  for (const OpRow& row : Ops()) {
    if (row.kind == OpRow::Kind::kEffect || (row.name != "empty" && FindWord(std::string(row.name))))
      words.emplace_back(row.name);
  }
  return words;
}

}  // namespace ulpscope::torch_backend
