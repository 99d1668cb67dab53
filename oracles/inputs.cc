// Compares data with the tensors of a case.
#include "oracles/inputs.h"

namespace ulpscope {

Result<void> CheckInputs(const Case& c, const std::map<std::string, TensorData>& inputs) {
  for (const auto& tensor : c.tensors) {
    const auto data = inputs.find(tensor.name);
    if (data == inputs.end()) return Fail("no input data for tensor '" + tensor.name + "'");
    if (data->second.shape != tensor.shape || data->second.dtype != tensor.dtype)
      return Fail("input data of tensor '" + tensor.name + "' is " +
                  Describe(data->second.dtype, data->second.shape) + ", the case says " +
                  Describe(tensor.dtype, tensor.shape));
  }
  return {};
}

}  // namespace ulpscope
