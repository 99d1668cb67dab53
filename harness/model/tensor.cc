// Tensor helpers.
#include "harness/model/tensor.h"

namespace ulpscope {

std::string Describe(DType dtype, const Shape& shape) {
  std::string text(Name(dtype));
  text += "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

std::vector<int64_t> Coordinates(int64_t index, const Shape& shape) {
  std::vector<int64_t> coordinates(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    coordinates[axis] = index % shape[axis];
    index /= shape[axis];
  }
  return coordinates;
}

TensorData TensorData::Zeros(DType dtype, Shape shape) {
  TensorData data{.dtype = dtype, .shape = std::move(shape), .bytes = {}};
  data.bytes.resize(static_cast<size_t>(data.size()) * SizeOf(dtype));
  return data;
}

}  // namespace ulpscope
