// What the autograd engine knows of a tensor's gradient: the input metadata of its gradient edge.
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/input_metadata.h>
#include <torch/csrc/autograd/variable.h>

#include "backends/torch/machine.h"
#include "backends/torch/values.h"

namespace ulpscope::torch_backend {
namespace {

/// For a leaf the node is its AccumulateGrad, made here if no graph holds one; it goes by the tensor's dtype
/// of now.
const torch::autograd::InputMetadata* Metadata(const torch::autograd::Edge& edge) {
  if (!edge.function || edge.input_nr >= edge.function->num_inputs()) return nullptr;
  return &edge.function->input_metadata(edge.input_nr);
}

}  // namespace

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
