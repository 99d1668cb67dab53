// Tensor data as it travels between harness, files and adapters: dtype, shape and row-major bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/num/dtype.h"
#include "harness/num/float_format.h"

namespace ulpscope {

using Shape = std::vector<int64_t>;

/// The number of elements of `shape`; 1 for a 0-dim tensor.
inline int64_t ElementCount(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

/// "bfloat16[32, 7, 1, 8]"
std::string Describe(DType dtype, const Shape& shape);

/// The coordinates of row-major element `index`.
std::vector<int64_t> Coordinates(int64_t index, const Shape& shape);

struct TensorData;
/// Sixteen hexadecimal digits that distinguish tensors of other dtype, shape or elements; all NaNs are one,
/// the zeros are two.
std::string BitsOf(const TensorData& data);

/// Elements in logical row-major order, whatever layout is requested of the backend.
struct TensorData {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::vector<std::byte> bytes = {};

  int64_t size() const { return ElementCount(shape); }
  /// The value of row-major element `index`.
  double At(int64_t index) const {
    return DecodeElement(bytes.data() + static_cast<size_t>(index) * SizeOf(dtype), dtype);
  }
  /// Stores a value that is representable in `dtype`.
  void Set(int64_t index, double value) {
    EncodeElement(value, dtype, bytes.data() + static_cast<size_t>(index) * SizeOf(dtype));
  }
  static TensorData Zeros(DType dtype, Shape shape);
  bool operator==(const TensorData&) const = default;
};

}  // namespace ulpscope
