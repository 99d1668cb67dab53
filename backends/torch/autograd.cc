// The autograd engine's own data on gradients: the input metadata of an edge, and of every node of a graph.
//
// ulpscope_torch/autograd_graph.py reads the same graph from Python, for the adapters whose tensors live
// there; the dtype that the engine demands of a gradient that is no leaf's is available in C++ alone.
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/input_metadata.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>
#include <set>

#include "backends/torch/machine.h"
#include "backends/torch/values.h"
#include "harness/base/find.h"

namespace ulpscope::torch_backend {
namespace {

/// For a leaf the node is its AccumulateGrad, made here if no graph holds one; it goes by the tensor's dtype
/// of now.
const torch::autograd::InputMetadata* Metadata(const torch::autograd::Edge& edge) {
  if (!edge.function || edge.input_nr >= edge.function->num_inputs()) return nullptr;
  return &edge.function->input_metadata(edge.input_nr);
}

using AutogradNode = torch::autograd::Node;

/// The nodes that gradients reach from `start`, each after all that feed it. Without recursion: a graph may
/// be long.
std::vector<AutogradNode*> InOrder(AutogradNode* start) {
  std::vector<AutogradNode*> finished;
  std::set<AutogradNode*> seen = {start};
  std::vector<std::pair<AutogradNode*, size_t>> open = {{start, 0}};
  while (!open.empty()) {
    auto& [node, next] = open.back();
    if (next == node->num_outputs()) {
      finished.push_back(node);
      open.pop_back();
      continue;
    }
    AutogradNode* below = node->next_edge(next++).function.get();
    if (below != nullptr && seen.insert(below).second) open.emplace_back(below, 0);
  }
  std::reverse(finished.begin(), finished.end());
  return finished;
}

/// False for an input that no gradient is taken for (a result that is not differentiable): it was never
/// described.
bool IsDescribed(const torch::autograd::InputMetadata& metadata) {
  return metadata.is_nested_tensor() || metadata.grad_dtype() || !metadata.shape_as_dim_vector().empty();
}

TraceTensor Described(const torch::autograd::InputMetadata& metadata) {
  TraceTensor tensor{.dtype = DTypeName(c10::typeMetaToScalarType(metadata.dtype()))};
  if (metadata.is_nested_tensor() || metadata.is_cpp_nested_tensor()) return tensor;
  for (const c10::SymInt& extent : metadata.shape_as_dim_vector())
    tensor.shape.push_back(extent.guard_int(__FILE__, __LINE__));
  return tensor;
}

}  // namespace

void AddAutogradNodes(const at::Tensor& root, const std::string& title, std::vector<TraceNode>* nodes) {
  if (!root.requires_grad()) return;
  const torch::autograd::Edge edge = torch::autograd::impl::gradient_edge(root);
  const auto top = static_cast<int64_t>(nodes->size());
  nodes->push_back({.id = top, .stage = "dispatch", .op = title});
  const std::vector<AutogradNode*> order = InOrder(edge.function.get());
  std::map<AutogradNode*, size_t> place;
  for (AutogradNode* node : order) {
    place[node] = nodes->size();
    TraceNode& made = nodes->emplace_back();
    made = {.id = static_cast<int64_t>(nodes->size()) - 1,
            .parent = top,
            .stage = "dispatch",
            .op = node->name()};
    for (uint32_t i = 0; i < node->num_inputs(); ++i) {
      const auto& metadata = node->input_metadata(i);
      if (IsDescribed(metadata)) made.inputs.push_back(Described(metadata));
    }
  }
  for (AutogradNode* node : order) {
    for (const torch::autograd::Edge& next : node->next_edges()) {
      if (!next.function) continue;
      std::vector<int64_t>& from = (*nodes)[place.at(next.function.get())].from;
      const auto id = static_cast<int64_t>(place.at(node));
      if (!Contains(from, id)) from.push_back(id);
      const auto* metadata = Metadata(next);
      if (metadata != nullptr && IsDescribed(*metadata))
        (*nodes)[place.at(node)].outputs.push_back(Described(*metadata));
    }
  }
}

std::string GradMetadataDType(const at::Tensor& tensor) {
  if (!tensor.requires_grad()) return "none";
  const torch::autograd::Edge edge = torch::autograd::impl::gradient_edge(tensor);
  const auto* metadata = Metadata(edge);
  return metadata == nullptr ? "none" : DTypeName(c10::typeMetaToScalarType(metadata->dtype()));
}

std::string GradDType(const at::Tensor& tensor) {
  if (!tensor.requires_grad()) return "none";
  const torch::autograd::Edge edge = torch::autograd::impl::gradient_edge(tensor);
  const auto* metadata = Metadata(edge);
  if (metadata == nullptr) return "none";
  const std::optional<at::ScalarType> dtype = metadata->grad_dtype();
  return dtype ? DTypeName(*dtype) : "any";
}

}  // namespace ulpscope::torch_backend
