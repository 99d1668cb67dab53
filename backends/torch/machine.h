// The eager interpreter of a program: names to tensors, steps to ops, autograd and autocast around them.
//
// One Machine lives for one run. Steps are carried out one by one through the dispatcher, as a PyTorch script
// would; the traced backend drives the same Machine step by step and replaces only how a stretch of ops is
// executed.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/sdk/adapter.h"

namespace ulpscope::torch_backend {

class Machine {
 public:
  Machine(const sdk::RunRequest& request, at::Device device);

  /// Throws Unsupported, or what PyTorch raises.
  void RunSteps(const std::vector<sdk::Step>& steps);
  void RunStep(const sdk::Step& step);

  /// Runs `body` inside the scope that `step` opens (autocast, no_grad, enable_grad); the state before comes
  /// back on every way out.
  void InScope(const sdk::Step& step, const std::function<void()>& body);

  /// Reads the observed values into `reply`.
  void Observe(sdk::RunReply& reply) const;

  /// The autograd graphs that backward() walked, as trace nodes with ids from 0; only where a trace is
  /// wanted.
  std::vector<TraceNode>& autograd_nodes() { return autograd_nodes_; }

  std::map<std::string, at::Tensor>& values() { return values_; }
  const std::map<std::string, at::Tensor>& values() const { return values_; }

 private:
  at::Tensor Value(const std::string& name) const;
  void CallStep(const sdk::Step& step);
  void Empty(const sdk::Step& step);
  void SetData(const sdk::Step& step);
  void ModuleTo(const sdk::Step& step);
  void Detach(const sdk::Step& step);
  void Backward(const sdk::Step& step);

  /// The last call: steps that name other results of it come next.
  struct Called {
    sdk::Step step;
    std::vector<c10::IValue> results;
  };

  const sdk::RunRequest& request_;
  at::Device device_;
  std::map<std::string, at::Tensor> values_;
  std::vector<TraceNode> autograd_nodes_;
  std::optional<Called> last_;
};

/// The words of the vocabulary that this backend carries out.
std::vector<std::string> VocabularyWords();

/// The dtype that the autograd engine has for the gradient of `tensor` (gradient_edge's input metadata);
/// "none" where there is no gradient.
std::string GradMetadataDType(const at::Tensor& tensor);

/// Adds the graph that a backward() of `root` will walk: a node called `title`, and below it each node of the
/// graph after all that feed it. Stage dispatch, where these nodes run; `inputs` are the dtypes and shapes of
/// their input metadata, which is what the engine makes a gradient fit before it enters; `from` the nodes
/// whose gradients they take.
void AddAutogradNodes(const at::Tensor& root, const std::string& title, std::vector<TraceNode>* nodes);

/// The dtype that the engine casts the gradient to ("any" where it takes every one; "none" without a
/// gradient).
std::string GradDType(const at::Tensor& tensor);

}  // namespace ulpscope::torch_backend
