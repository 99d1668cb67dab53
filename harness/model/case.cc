// Case look-ups.
#include "harness/model/case.h"

namespace ulpscope {

const TensorSpec* Case::FindTensor(std::string_view name) const {
  for (const auto& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

}  // namespace ulpscope
