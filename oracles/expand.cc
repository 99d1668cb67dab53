// Walks a program: names, the memory that they share, gradients, and values without a reference.
#include "oracles/expand.h"

#include <algorithm>
#include <array>

#include "harness/base/find.h"
#include "oracles/lower.h"

namespace ulpscope {
namespace {

/// The word of an in-place op, which a schema marks by the last letter of its name: "mul" of
/// aten::mul_.Tensor. Empty for any other op.
std::string_view InPlaceWord(std::string_view op) {
  if (!op.starts_with("aten::")) return {};
  op = op.substr(6, op.find('.') == op.npos ? op.npos : op.find('.') - 6);
  return op.ends_with('_') ? op.substr(0, op.size() - 1) : std::string_view();
}

/// True if `aten::WORD_` takes the operands of the vocabulary's WORD and nothing else.
bool IsPointwiseWord(std::string_view word) {
  static constexpr std::array kWords = std::to_array<std::string_view>(
      {"add",   "sub",   "mul",     "div",         "neg",        "relu", "sqrt",     "rsqrt", "exp",
       "expm1", "log",   "log1p",   "sin",         "cos",        "tanh", "sigmoid",  "erf",   "erfc",
       "abs",   "exp2",  "log2",    "sinh",        "cosh",       "pow",  "square",   "floor", "ceil",
       "round", "trunc", "sign",    "clamp",       "leaky_relu", "elu",  "hardtanh", "lerp",  "addcmul",
       "relu6", "mish",  "addcdiv", "masked_fill", "reciprocal"});
  return Contains(kWords, word);
}

/// Expands steps in order; values that depend on something unknown are poisoned with the reason.
class Walker {
 public:
  explicit Walker(const Case& c) : case_(c) {
    for (const auto& tensor : c.tensors) {
      const int node = low_.Input(tensor);
      env_[tensor.name] = node;
      memory_[tensor.name] = ++memories_;
      if (tensor.requires_grad) {
        low_.needs_grad[static_cast<size_t>(node)] = true;
        low_.leaf[node] = tensor.name;
      }
    }
  }

  Result<Plan> Run() {
    try {
      Steps(case_.program);
    } catch (const LoweringError& error) {
      // The program itself is ill-formed: nothing of it has a reference.
      for (const auto& name : case_.observe) low_.plan.gaps[name] = error.message;
      return std::move(low_.plan);
    }
    for (const auto& name : case_.observe) Observe(name);
    return std::move(low_.plan);
  }

 private:
  void Observe(const std::string& name) {
    const bool gradient = name.ends_with(".grad");
    const std::string base = gradient ? name.substr(0, name.size() - 5) : name;
    if (const auto gap = gaps_.find(gradient ? name : base); gap != gaps_.end()) {
      low_.plan.gaps[name] = gap->second;
    } else if (gradient) {
      if (const auto grad = low_.grads.find(base); grad != low_.grads.end())
        low_.plan.values[name] = grad->second;
    } else if (const auto node = env_.find(name); node != env_.end()) {
      low_.plan.values[name] = node->second;
    }
  }

  void Steps(const std::vector<Step>& steps) {
    for (const auto& step : steps) {
      if (IsScope(step.op)) {
        Scope(step);
      } else {
        One(step);
      }
    }
  }

  void Scope(const Step& step) {
    const bool grad_before = low_.grad_enabled;
    const auto autocast_before = low_.autocast;
    if (step.op == "no_grad") low_.grad_enabled = false;
    if (step.op == "enable_grad") low_.grad_enabled = true;
    if (step.op == "autocast") {
      low_.autocast = BoolAttr(step, "enabled", true) ? DTypeAttr(step, "dtype").value_or(DType::kBfloat16)
                                                      : std::optional<DType>();
    }
    Steps(step.steps);
    low_.grad_enabled = grad_before;
    low_.autocast = autocast_before;
  }

  /// Why an operand has no node, or "".
  std::string GapOf(const Step& step) const {
    for (const auto& operand : step.of) {
      if (const auto gap = gaps_.find(operand.name); gap != gaps_.end()) return gap->second;
    }
    const auto grad = step.attrs.find("grad");
    if (step.op != "backward" || grad == step.attrs.end()) return "";
    const auto gap = gaps_.find(std::get<std::string>(grad->second.value));
    return gap == gaps_.end() ? "" : gap->second;
  }

  /// Removes the references that a step without one invalidates: its result's, and those of all values that
  /// see the memory it writes.
  void Poison(const Step& step, const std::string& why) {
    if (!step.as.empty()) {
      gaps_[step.as] = why;
      // An op of no known meaning may give a view of its first operand.
      const bool of_tensor = !step.of.empty() && memory_.contains(step.of[0].name);
      memory_[step.as] = of_tensor ? memory_[step.of[0].name] : ++memories_;
    }
    const bool first = !InPlaceWord(step.op).empty() || step.op == "set_data" || step.op == "module_to";
    for (const std::string& written : {step.out, first && !step.of.empty() ? step.of[0].name : ""}) {
      if (written.empty()) continue;
      const int place = memory_[written];
      for (const auto& [name, memory] : memory_) {
        if (memory == place) gaps_[name] = why;
      }
    }
    if (step.op == "backward") {
      for (const auto& tensor : case_.tensors) gaps_[tensor.name + ".grad"] = why;
    }
  }

  int Operand_(const Operand& operand, const std::string& op = "") {
    if (operand.scalar) {
      const auto& value = operand.scalar->value;
      double number = 0;
      if (const auto* integer = std::get_if<int64_t>(&value))
        number = static_cast<double>(*integer);
      else if (const auto* real = std::get_if<double>(&value))
        number = *real;
      else
        number = std::get<bool>(value) ? 1 : 0;
      return low_.PythonScalar(number, DType::kFloat64, op);
    }
    if (operand.name.ends_with(".grad")) {
      const auto grad = low_.grads.find(operand.name.substr(0, operand.name.size() - 5));
      if (grad != low_.grads.end()) return grad->second;
    }
    const auto node = env_.find(operand.name);
    if (node == env_.end()) throw LoweringError{"'" + operand.name + "' is not defined here"};
    return node->second;
  }

  /// A step that cannot be expanded takes the reference from the values made from it, and from no other.
  void One(const Step& step) {
    if (step.op == "sync") return;
    if (const std::string gap = GapOf(step); !gap.empty()) return Poison(step, gap);
    try {
      Expand(step);
    } catch (const LoweringError& error) {
      Poison(step, error.message);
    }
  }

  void Expand(const Step& step) {
    if (step.op == "set_data") return SetData(step);
    if (step.op == "module_to") return ModuleTo(step);
    if (step.op == "detach_") return Detach(step);
    if (step.op == "backward") return BackwardStep(step);
    const std::string_view in_place = InPlaceWord(step.op);
    const bool copies = in_place == "copy" && step.of.size() == 2 && step.attrs.empty();
    const bool known = in_place.empty() || IsPointwiseWord(in_place);
    const OpLowering op = known ? FindLowering(in_place.empty() ? step.op : in_place) : nullptr;
    if (op == nullptr && !copies) return Poison(step, "the oracle has no definition of op '" + step.op + "'");
    OpCall call{.step = step, .args = {}, .is_scalar = {}};
    for (const auto& operand : step.of) {
      call.args.push_back(Operand_(operand, step.op));
      call.is_scalar.push_back(operand.scalar.has_value());
    }
    if (!in_place.empty()) return InPlace(step, call, op);
    int result = op(low_, call);
    if (!step.out.empty()) result = IntoBuffer(result, step);
    if (step.as.empty()) return;
    env_[step.as] = result;
    Name(result, step.as);
    memory_[step.as] = step.out.empty() ? MemoryOf(step, call, result) : memory_[step.out];
  }

  /// A view shares its operand's memory; a clone is a view in the plan alone, and a cast to the current dtype is the
  /// operand itself.
  int MemoryOf(const Step& step, const OpCall& call, int result) {
    for (size_t i = 0; i < call.args.size() && step.op != "clone"; ++i) {
      const int arg = call.args[i];
      const bool same_cast = step.op == "cast" && low_.at(result).dtype == low_.at(arg).dtype;
      if (same_cast || low_.plan.Root(result) == low_.plan.Root(arg)) return memory_[step.of[i].name];
    }
    return ++memories_;
  }

  /// x.mul_(y): the product in the dtype of x, under the name of x. Without `op`: x.copy_(y).
  void InPlace(const Step& step, const OpCall& call, OpLowering op) {
    const std::string& name = step.of.at(0).name;
    const int before = call.args.at(0);
    const Shape shape = low_.at(before).shape;
    const DType dtype = low_.at(before).dtype;
    int after =
        op == nullptr ? low_.Cast(low_.Expand(call.args.at(1), shape), dtype) : Stored(op(low_, call), dtype);
    if (low_.at(after).shape != shape)
      throw LoweringError{step.op + ": the result has another shape than '" + name + "'"};
    if (!low_.grad_enabled) StandFor(before, after);
    Write(step, name, before, after);
    if (!step.as.empty()) {
      env_[step.as] = after;
      memory_[step.as] = memory_[name];
    }
    Name(after, step.as.empty() ? name : step.as);
  }

  /// `after` is the new content of the memory of `name`, for every name that shows the same part of it.
  void Write(const Step& step, const std::string& name, int before, int after) {
    for (auto& [other, node] : env_) {
      if (memory_[other] != memory_[name]) continue;
      if (node != before)
        gaps_[other] = "the oracle does not follow what " + step.op + " writes through '" + name + "'";
      node = after;
    }
  }

  /// Autograd continues to see the variable `before`, whose data became `after`.
  void StandFor(int before, int after) {
    const auto known = low_.identity.find(before);
    low_.identity[after] = known == low_.identity.end() ? before : known->second;
    low_.needs_grad[static_cast<size_t>(after)] = low_.needs_grad[static_cast<size_t>(before)];
  }

  /// out=: the result has the buffer's dtype. That rounding is part of the op, not a cast of the program's own.
  int IntoBuffer(int result, const Step& step) {
    const auto buffer = env_.find(step.out);
    if (buffer == env_.end()) throw LoweringError{"out= names '" + step.out + "', which is not defined here"};
    result = Stored(result, low_.at(buffer->second).dtype);
    Write(step, step.out, buffer->second, result);
    return result;
  }

  /// The result of an op with the dtype of the memory that it is written to.
  int Stored(int result, DType dtype) {
    const int root = low_.plan.Root(result);
    if (low_.at(root).kind == NodeKind::kInput || low_.at(root).kind == NodeKind::kCast) {
      result = low_.Store(result, dtype);
    } else {
      low_.at(root).dtype = dtype;
      low_.at(result).dtype = dtype;
    }
    return result;
  }

  void Name(int node, const std::string& name) {
    auto& root = low_.at(low_.plan.Root(node));
    if (root.kind != NodeKind::kInput && root.kind != NodeKind::kConstant && root.name.empty())
      root.name = name;
  }

  void SetData(const Step& step) {
    const std::string& name = step.of.at(0).name;
    const int before = Operand_(step.of.at(0));
    const auto to = ReadSetDataTo(step);
    if (!to) throw LoweringError{to.error().message};
    int after, value_memory = ++memories_;
    if (const auto* dtype = std::get_if<DType>(&*to)) {
      after = low_.Cast(before, *dtype);
    } else {
      const auto value = env_.find(std::get<std::string>(*to));
      if (value == env_.end()) throw LoweringError{"set_data: undefined value"};
      after = low_.Reshape(value->second,
                           low_.at(value->second).shape);  // a new node: another version of the same data
      low_.views.erase(after);
      value_memory = memory_[value->first];
    }
    // set_data replaces the data under the variable: autograd still sees the same variable.
    StandFor(before, after);
    env_[name] = after;
    memory_[name] = value_memory;
    Name(after, name);
  }

  /// torch.nn.Module.to: set_data of the parameter, or a new leaf under the same name.
  void ModuleTo(const Step& step) {
    const std::string& name = step.of.at(0).name;
    const int before = Operand_(step.of.at(0));
    const auto dtype = DTypeAttr(step, "dtype");
    if (!dtype) throw LoweringError{"module_to needs dtype"};
    const int after = low_.Cast(before, *dtype);
    low_.needs_grad[static_cast<size_t>(after)] = low_.needs_grad[static_cast<size_t>(before)];
    if (BoolAttr(step, "overwrite", false)) {
      if (low_.needs_grad[static_cast<size_t>(after)]) low_.leaf[after] = name;
      low_.grads.erase(name);
    } else {
      StandFor(before, after);
      if (const auto grad = low_.grads.find(name); grad != low_.grads.end())
        grad->second = low_.Cast(grad->second, *dtype);
    }
    env_[name] = after;
    memory_[name] = ++memories_;
    Name(after, name);
  }

  /// w.detach_().requires_grad_(): the same data under a separate variable, which keeps its gradient.
  void Detach(const Step& step) {
    const std::string& name = step.of.at(0).name;
    const int before = Operand_(step.of.at(0));
    const int after = low_.Reshape(before, low_.at(before).shape);  // a new node: another variable
    low_.views.erase(after);
    low_.needs_grad[static_cast<size_t>(after)] = BoolAttr(step, "requires_grad", false);
    if (low_.needs_grad[static_cast<size_t>(after)]) low_.leaf[after] = name;
    env_[name] = after;
  }

  void BackwardStep(const Step& step) {
    const int root = Operand_(step.of.at(0));
    int seed;
    if (const auto grad = step.attrs.find("grad"); grad != step.attrs.end()) {
      seed = Operand_(Operand{.name = std::get<std::string>(grad->second.value), .scalar = {}});
    } else {
      seed = low_.Expand(low_.Scalar(1, low_.at(root).dtype), low_.at(root).shape);
    }
    Backward(low_, root, seed);
    for (const auto& [leaf, why] : low_.lost_grads) gaps_[leaf + ".grad"] = why;
  }

  const Case& case_;
  Lowering low_;
  std::map<std::string, int> env_;
  std::map<std::string, int> memory_;  ///< names that share memory share a number
  int memories_ = 0;
  std::map<std::string, std::string> gaps_;
};

}  // namespace

Result<Plan> Lower(const Case& c) { return Walker(c).Run(); }

}  // namespace ulpscope
