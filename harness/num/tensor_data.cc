// TensorData: description, coordinates, zeros.
#include "harness/num/tensor_data.h"

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "harness/base/hash.h"

namespace ulpscope {

std::string Describe(DType dtype, const Shape& shape) {
  std::string text(Name(dtype));
  text += '[';
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(shape[axis]);
  }
  return text + ']';
}

std::vector<int64_t> Coordinates(int64_t index, const Shape& shape) {
  std::vector<int64_t> coordinates(shape.size(), 0);
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 0) continue;
    coordinates[axis] = index % shape[axis];
    index /= shape[axis];
  }
  return coordinates;
}

std::string BitsOf(const TensorData& data) {
  uint64_t mixed = kGoldenGamma + static_cast<uint64_t>(data.dtype);
  for (const int64_t extent : data.shape) mixed = MixBits(mixed + static_cast<uint64_t>(extent) + 1);
  for (int64_t i = 0; i < data.size(); ++i) {
    const double value = data.At(i);
    const double one = std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
    mixed = MixBits(mixed + kGoldenGamma) ^ std::bit_cast<uint64_t>(one);
  }
  mixed = MixBits(mixed);
  // By hand: what adapters link of ours has no formatting library.
  std::string digits(16, '0');
  for (size_t i = 0; i < digits.size(); ++i)
    digits[digits.size() - 1 - i] = "0123456789abcdef"[mixed >> 4 * i & 0xf];
  return digits;
}

TensorData TensorData::Zeros(DType dtype, Shape shape) {
  const size_t bytes = static_cast<size_t>(ElementCount(shape)) * SizeOf(dtype);
  return TensorData{.dtype = dtype, .shape = std::move(shape), .bytes = std::vector<std::byte>(bytes)};
}

}  // namespace ulpscope
