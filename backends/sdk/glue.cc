// Glue: walking the program; names, buffers, aliases, observed values.
#include "backends/sdk/glue.h"

#include <utility>
#include <variant>

#include "harness/words/ops.h"

namespace ulpscope::sdk {

tl::unexpected<StepFailure> StepUnsupported(std::string reason) {
  return tl::unexpected(StepFailure{.outcome = Outcome::kUnsupported, .text = std::move(reason)});
}

tl::unexpected<StepFailure> StepRaised(std::string error_class, std::string text) {
  return tl::unexpected(StepFailure{
      .outcome = Outcome::kRaised, .error_class = std::move(error_class), .text = std::move(text)});
}

const TensorData* GlueContext::Tensor(const Operand& operand) const {
  const auto found = values_.find(operand.name);
  return operand.IsScalar() || found == values_.end() ? nullptr : found->second.get();
}

std::optional<DType> GlueContext::OutDType(const Step& step) const {
  const auto found = values_.find(step.out);
  if (step.out.empty() || found == values_.end()) return std::nullopt;
  return found->second->dtype;
}

TensorData GlueContext::Cast(const TensorData& tensor, DType dtype, const std::string& under) {
  if (tensor.dtype == dtype) return tensor;
  const Stopwatch stopwatch;
  TensorData result = RoundedCopy(tensor, dtype);
  ulpscope::Cast cast{.from = std::string(Name(tensor.dtype)),
                      .to = std::string(Name(dtype)),
                      .shape = tensor.shape,
                      .bytes = static_cast<int64_t>(result.bytes.size()),
                      .under = under,
                      .stage = "glue"};
  if (trace_) {
    cast.us = stopwatch.Milliseconds() * 1e3;
    if (nodes_.size() < kMaxTraceNodes) {
      cast.node = static_cast<int64_t>(nodes_.size());
      nodes_.push_back({.id = cast.node,
                        .parent = step_,
                        .stage = "glue",
                        .kind = TraceKind::kConvert,
                        .op = "cast",
                        .inputs = {{cast.from, cast.shape}},
                        .outputs = {{cast.to, cast.shape}},
                        .us = cast.us});
    }
  }
  casts_.push_back(std::move(cast));
  return result;
}

/// Runs one program; lives for one request.
class GlueMachine {
 public:
  GlueMachine(const RunRequest& request, const Kernel& kernel) : request_(request), kernel_(kernel) {
    context_.poison_ = request.poison;
    context_.trace_ = request.trace;
    if (request.trace) context_.nodes_.push_back({.id = 0, .parent = -1, .stage = "glue", .op = "program"});
    for (const auto& [name, tensor] : request.inputs)
      context_.values_[name] = std::make_shared<TensorData>(tensor);
  }

  RunReply Run() {
    RunReply reply;
    const tl::expected<void, StepFailure> done = RunSteps(request_.program.steps);
    if (!done) {
      reply.outcome = done.error().outcome;
      reply.error_class = done.error().error_class;
      reply.text = done.error().text;
    } else {
      Observe(reply);
    }
    reply.casts = std::move(context_.casts_);
    if (context_.nodes_.size() == kMaxTraceNodes) context_.Note("the trace is cut off at its most nodes");
    reply.nodes = std::move(context_.nodes_);
    reply.notes = std::move(context_.notes_);
    return reply;
  }

 private:
  using Done = tl::expected<void, StepFailure>;

  Done RunSteps(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      Done done = RunStep(step);
      if (!done) return done;
    }
    return {};
  }

  Done RunStep(const Step& step) {
    // Without autograd these two change nothing; autocast would, so no glue stands in for it.
    if (step.op == "no_grad" || step.op == "enable_grad") return RunSteps(step.steps);
    if (step.op == "sync") return {};
    const int64_t node = OpenNode(step);
    const Stopwatch stopwatch;
    Done done = step.op == "set_data" ? SetData(step) : Compute(step, node);
    if (done && node >= 0) context_.nodes_[static_cast<size_t>(node)].us = stopwatch.Milliseconds() * 1e3;
    context_.step_ = -1;
    return done;
  }

  Done Compute(const Step& step, int64_t node) {
    context_.NameKernel({});
    std::optional<StepResult> result = kernel_(step, context_);
    const bool by_glue = !result.has_value();
    if (by_glue) result = GlueStep(step, context_);
    if (!*result) return tl::unexpected(result->error());
    if (by_glue && IsView(step.op)) viewed_.insert(context_.values_.at(step.of[0].name).get());
    if (node >= 0) {
      TraceNode& traced = context_.nodes_[static_cast<size_t>(node)];
      traced.outputs = {{std::string(Name((*result)->dtype)), (*result)->shape}};
      if (!by_glue) traced.stage = "kernel";
      if (by_glue && (IsView(step.op) || step.op == "clone"))
        traced.kind = TraceKind::kMove;  // views are copies here
      if (by_glue && step.op == "cast") traced.kind = TraceKind::kConvert;
      if (by_glue && step.op == "empty") traced.kind = TraceKind::kView;
      if (!by_glue && !context_.kernel_.empty()) traced.op = context_.kernel_;
      if (!by_glue && !context_.operands_as_.empty()) TraceOperandsAs(context_.operands_as_, node);
    }
    return Store(step, std::move(**result), by_glue);
  }

  /// Under the kernel's node one for each of its operands, in the format that the library reports.
  void TraceOperandsAs(const std::string& format, int64_t kernel) {
    const std::vector<TraceTensor> operands = context_.nodes_[static_cast<size_t>(kernel)].inputs;
    for (const TraceTensor& operand : operands) {
      if (context_.nodes_.size() >= kMaxTraceNodes) return;
      context_.nodes_.push_back({.id = static_cast<int64_t>(context_.nodes_.size()),
                                 .parent = kernel,
                                 .stage = "kernel",
                                 .op = "operand as " + format,
                                 .inputs = {operand},
                                 .outputs = {{format, operand.shape}}});
    }
  }

  /// The step's node in the trace, with what it reads; -1 without a trace.
  int64_t OpenNode(const Step& step) {
    if (!context_.trace_ || context_.nodes_.size() >= kMaxTraceNodes) return -1;
    TraceNode node{
        .id = static_cast<int64_t>(context_.nodes_.size()), .parent = 0, .stage = "glue", .op = step.op};
    for (const Operand& operand : step.of) {
      const TensorData* tensor = context_.Tensor(operand);
      if (tensor == nullptr) continue;
      node.inputs.push_back({std::string(Name(tensor->dtype)), tensor->shape});
      const auto maker = context_.made_by_.find(tensor);
      if (maker != context_.made_by_.end()) node.from.push_back(maker->second);
    }
    context_.step_ = node.id;
    context_.nodes_.push_back(std::move(node));
    return context_.step_;
  }

  /// Remembers that the step at hand made (or filled) `value`.
  void MadeBy(const TensorData* value) {
    if (context_.step_ >= 0) context_.made_by_[value] = context_.step_;
  }

  static bool IsView(const std::string& op) {
    const OpRow* row = FindOp(op);
    return row != nullptr && row->kind == OpRow::Kind::kView;
  }

  Done Store(const Step& step, TensorData value, bool by_glue) {
    if (by_glue && !step.as.empty()) glue_.insert(step.as);
    if (!by_glue) glue_.erase(step.as);
    if (step.out.empty()) {
      const auto made = std::make_shared<TensorData>(std::move(value));
      MadeBy(made.get());
      if (IsView(step.op)) viewed_.insert(made.get());
      if (!step.as.empty()) context_.values_[step.as] = made;
      kept_.push_back(made);
      return {};
    }
    const std::shared_ptr<TensorData> buffer = context_.values_.at(step.out);
    if (viewed_.contains(buffer.get())) {
      return StepUnsupported("out= writes to '" + step.out +
                             "', of which a view was taken: views are copies in this adapter");
    }
    if (buffer->shape != value.shape) {
      return StepUnsupported("out= buffer " + Describe(buffer->dtype, buffer->shape) + " for a result " +
                             Describe(value.dtype, value.shape) +
                             ": resizing a buffer is not in this adapter");
    }
    *buffer = context_.Cast(value, buffer->dtype, step.op);
    MadeBy(buffer.get());
    // The buffer may be known under several names; whoever wrote last made all of them.
    for (const auto& [name, alias] : context_.values_) {
      if (alias == buffer && by_glue) glue_.insert(name);
      if (alias == buffer && !by_glue) glue_.erase(name);
    }
    if (!step.as.empty()) context_.values_[step.as] = buffer;
    return {};
  }

  /// w.data = w.data.to(dtype), or w.data = value: the name keeps its identity, what it holds is replaced.
  Done SetData(const Step& step) {
    const TensorData* target = step.of.size() == 1 ? context_.Tensor(step.of[0]) : nullptr;
    const Result<SetDataTo> to = ReadSetDataTo(step);
    if (!to) return StepUnsupported(to.error().message);
    if (target == nullptr) return StepUnsupported("set_data: needs one tensor");
    const std::shared_ptr<TensorData> slot = context_.values_.at(step.of[0].name);
    if (const auto* dtype = std::get_if<DType>(&*to)) {
      *slot = context_.Cast(*slot, *dtype, "set_data");
    } else {
      const auto value = context_.values_.find(std::get<std::string>(*to));
      if (value == context_.values_.end())
        return StepUnsupported("set_data: there is no value '" + std::get<std::string>(*to) + "'");
      *slot = TensorData(*value->second);
    }
    MadeBy(slot.get());
    return {};
  }

  void Observe(RunReply& reply) {
    for (const std::string& name : request_.program.observe) {
      const auto found = context_.values_.find(name);
      if (found != context_.values_.end()) {
        reply.tensors[name] = *found->second;
        if (glue_.contains(name)) reply.parts[name] = "glue";
      } else {
        reply = RunReply::Unsupported("observation '" + name +
                                      "': this adapter has no autograd and no memory statistics");
        return;
      }
    }
  }

  const RunRequest& request_;
  const Kernel& kernel_;
  GlueContext context_;
  std::set<std::string> glue_;          ///< names whose value glue made last
  std::set<const TensorData*> viewed_;  ///< values that share storage in PyTorch and are copies here
  /// All values: viewed_ holds addresses, none may be used again.
  std::vector<std::shared_ptr<TensorData>> kept_;
};

RunReply RunWithGlue(const RunRequest& request, const Kernel& kernel) {
  return GlueMachine(request, kernel).Run();
}

}  // namespace ulpscope::sdk
